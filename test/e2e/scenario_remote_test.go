// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

// remoteScenarios are about components with dependents in another cluster.
var remoteScenarios = []*scenario{
	{
		name:     "install into another cluster",
		remote:   true,
		settings: intoTheFarCluster,
		desired:  map[string][]string{"main": lifeOne},
		owned:    lifeScenarios[0].owned,
	},
	{
		name:      "upgrade in another cluster with rotated credentials",
		remote:    true,
		settings:  intoTheFarCluster,
		installed: map[string][]string{"main": lifeOne},
		desired:   map[string][]string{"main": lifeTwo},
		meanwhile: func(t testing.TB, f *fixture) { f.rotate(t, "second") },
		owned:     lifeScenarios[1].owned,
	},
	{
		name:      "delete in another cluster with rotated credentials",
		remote:    true,
		settings:  intoTheFarCluster,
		installed: map[string][]string{"main": lifeOne},
		meanwhile: func(t testing.TB, f *fixture) { f.rotate(t, "second") },
	},
	{
		// The credentials go with the namespace, so nothing can be deleted; that
		// is reported, and nothing is dropped from the inventory until a user abandons it.
		name:      "delete the namespace of a component in another cluster",
		remote:    true,
		settings:  intoTheFarCluster,
		installed: map[string][]string{"main": {configMap("a", "1"), secret("b", "1")}},
		act:       deleteHomeAfterItsCredentials,
		ends:      map[string]string{"main": vocabulary.ReasonDeletionBlocked},
		owned:     []string{"ConfigMap $NS/a", "Secret $NS/b"},
		after:     abandon,
	},
}

func intoTheFarCluster(_ string, spec *BundleSpec) {
	spec.KubeConfig = &component.KubeConfigSpec{SecretRef: component.SecretKeyReference{Name: "far"}}
}

// deleteHomeAfterItsCredentials is what the namespace controller does if it comes to
// the Secret before the operator has read it.
func deleteHomeAfterItsCredentials(t testing.TB, f *fixture) {
	t.Helper()
	far := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "far"}}
	if err := f.Delete(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	deleteHome(t, f)
}

// abandon gives up a component with dependents that cannot be reached.
func abandon(t testing.TB, f *fixture) {
	t.Helper()
	bundle := f.named("main")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+reconcilerName+`/abandon":"true"}}}`))
	if err := f.Patch(t.Context(), bundle, patch); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	namespaceIs("$NS", false)(t, f)
}

// homeScenarios delete the namespace that the component lives in: the server
// deletes the component with everything else, in any order.
var homeScenarios = []*scenario{
	{
		name:      "delete the namespace of a component",
		installed: map[string][]string{"main": scattered},
		act:       deleteHome,
		gone:      []string{"main"},
		after:     homeIsGone,
	},
	{
		name:      "delete the namespace of a component that acts as a service account",
		existing:  []string{deployer},
		installed: map[string][]string{"main": scattered},
		settings:  func(_ string, spec *BundleSpec) { spec.ServiceAccountName = "deployer" },
		act:       deleteHome,
		gone:      []string{"main"},
		after:     homeIsGone,
	},
	{
		name:      "delete the namespace of a component with a type and an instance",
		installed: map[string][]string{"main": machine},
		act:       deleteHome,
		gone:      []string{"main"},
		after:     homeIsGone,
	},
}

// scattered are objects in the namespace of the component, in another one, and in none.
var scattered = []string{
	configMap("a", "1"), secret("b", "1"), configMap("$NS-more/c", "1", "apply-order", "1"),
	head("rbac.authorization.k8s.io/v1", "ClusterRole", "$ID", nil) + "rules: []\n",
}

// deployer is a service account that may do everything.
var deployer = serviceAccount("deployer") + "---\n" + head("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "$ID", nil) +
	"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
	"subjects: [{kind: ServiceAccount, name: deployer, namespace: $NS}]\n"

func deleteHome(t testing.TB, f *fixture) {
	t.Helper()
	if err := f.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		t.Fatal(err)
	}
}

func homeIsGone(t testing.TB, f *fixture) {
	t.Helper()
	namespaceIs("$NS", false)(t, f)
	namespaceIs("$NS-more", false)(t, f)
}

// far is a second cluster. TestMain stops it.
var far struct {
	sync.Mutex
	env    *env.Environment
	client client.Client
}

func farCluster(t testing.TB) (*env.Environment, client.Client) {
	t.Helper()
	far.Lock()
	defer far.Unlock()
	if far.env == nil {
		e, err := env.Start(context.WithoutCancel(t.Context()), env.Options{AuditLog: true, AuditBodies: true})
		if err != nil {
			t.Fatal(err)
		}
		far.env = e
		if far.client, err = client.New(e.Config(), client.Options{Scheme: testScheme}); err != nil {
			t.Fatal(err)
		}
	}
	return far.env, far.client
}

func stopFarCluster() error {
	if far.env == nil {
		return nil
	}
	return far.env.Stop()
}

// anyAddress lets operators reach a cluster on this machine.
func anyAddress(context.Context, string, netip.AddrPort) error { return nil }

// gateway stands between operators and the second cluster. It admits requests with
// the current token, and its requests go through the view of the operator
// that is in danger.
type gateway struct {
	server *httptest.Server
	token  atomic.Value // string
	view   atomic.Pointer[http.RoundTripper]
}

// openGateway makes the second cluster the one in which the fixture's components
// put their dependents; it has the namespace of the components, too.
func (f *fixture) openGateway(t testing.TB) {
	t.Helper()
	e, c := farCluster(t)
	f.target, f.targetEnv = c, e
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		t.Fatal(err)
	}
	config, err := e.ConfigFor(f.user(), "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	g := &gateway{}
	g.view.Store(&transport)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(address)
			r.Out.Header.Del("Authorization")
		},
		Transport:    wire.Through(transport, func(r *http.Request) (*http.Response, error) { return (*g.view.Load()).RoundTrip(r) }),
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+g.token.Load().(string) {
			http.Error(w, "unknown token", http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(g.server.Close)
	f.gateway, f.throughGateway = g, transport
	f.mayBeIdle = true // in the cluster with the log that is checked
	f.rotate(t, "first")
}

// rotate makes another token the only valid one, and notifies the components.
func (f *fixture) rotate(t testing.TB, token string) {
	t.Helper()
	f.gateway.token.Store(token)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.gateway.server.Certificate().Raw})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "far"},
		Data: map[string][]byte{"value": fmt.Appendf(nil, `{
			"apiVersion": "v1", "kind": "Config", "current-context": "far",
			"contexts": [{"name": "far", "context": {"cluster": "far", "user": "far"}}],
			"clusters": [{"name": "far", "cluster": {"server": %q, "certificate-authority-data": %q}}],
			"users": [{"name": "far", "user": {"token": %q}}]}`,
			f.gateway.server.URL, base64.StdEncoding.EncodeToString(authority), token)},
	}
	err := f.Create(t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = f.Update(t.Context(), secret)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// watchGateway sends the requests to the second cluster through a view, too.
func (f *fixture) watchGateway(wrap func(http.RoundTripper) http.RoundTripper) {
	if f.gateway == nil {
		return
	}
	view := f.throughGateway
	if wrap != nil {
		view = wrap(view)
	}
	f.gateway.view.Store(&view)
}
