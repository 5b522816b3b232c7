// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package mount

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{Cluster: true})) }

func TestAMountedPageAuthenticatesRequests(t *testing.T) {
	e, ctx := env.Shared(t), context.WithoutCancel(t.Context())
	c := check.Must(client.New(e.Config(), client.Options{}))(t)
	for _, name := range []string{"viewer", "stranger", "page"} {
		check.NoError(t, c.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}))
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "corbel-ui"}, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/corbel/*"}, Verbs: []string{"get"}}}}
	check.NoError(t, c.Create(ctx, role))
	check.NoError(t, c.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "corbel-ui"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "viewer"}},
	}))
	manager := check.Must(ctrl.NewManager(e.Config(), ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}))(t)
	listener := check.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	check.NoError(t, AddPage(manager, listener, "default:page"))
	managerCtx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(managerCtx) }()

	ask := func(method, path, token string) (int, string) {
		t.Helper()
		r := check.Must(http.NewRequestWithContext(ctx, method, "http://"+listener.Addr().String()+path, strings.NewReader("{}")))(t)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		response := check.Must(http.DefaultClient.Do(r))(t)
		defer func() { _ = response.Body.Close() }()
		text := check.Must(io.ReadAll(response.Body))(t)
		return response.StatusCode, string(text)
	}
	viewer, stranger := tokenOf(t, c, "viewer"), tokenOf(t, c, "stranger")
	for name, test := range map[string]struct {
		method, path, token string
		status              int
		text                string
	}{
		"without a token":          {"GET", "/corbel/", "", 401, "Unauthorized"},
		"an answer without one":    {"GET", "/corbel/api/info", "", 401, "Unauthorized"},
		"a wrong token":            {"GET", "/corbel/", "wrong", 500, "Authentication failed"},
		"without the right":        {"GET", "/corbel/", stranger, 403, "denied"},
		"the page":                 {"GET", "/corbel/", viewer, 200, "<html"},
		"an answer":                {"GET", "/corbel/api/info", viewer, 200, `"write":false`},
		"a verb that is not given": {"POST", "/corbel/api/plan", viewer, 403, "denied"},
		"what is elsewhere":        {"GET", "/metrics", viewer, 403, "denied"},
	} {
		if status, text := ask(test.method, test.path, test.token); status != test.status || !strings.Contains(text, test.text) {
			t.Errorf("%s: %d %s", name, status, text)
		}
	}

	// A stream does not hold the end of the manager up.
	r := check.Must(http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String()+"/corbel/api/stream", nil))(t)
	r.Header.Set("Authorization", "Bearer "+viewer)
	stream := check.Must(http.DefaultClient.Do(r))(t)
	defer func() { _ = stream.Body.Close() }()
	if stream.StatusCode != http.StatusOK {
		t.Error(stream.Status)
	}
	cancel()
	select {
	case err := <-ended:
		check.NoError(t, err)
	case <-time.After(20 * time.Second): // the manager itself gives up after 30
		t.Error("the manager waits for the stream")
	}
}

// tokenOf returns a token of a service account.
func tokenOf(t *testing.T, c client.Client, name string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{}
	check.NoError(t, c.SubResource("token").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}, request))
	return request.Status.Token
}
