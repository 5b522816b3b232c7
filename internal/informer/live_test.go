// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

const (
	patience = 30 * time.Second
	canary   = "canary-90be12"
)

// received is the text of all answers.
type received struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *received) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *received) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// stage is a namespace with a Manager of a user of its own.
type stage struct {
	*testing.T
	env       *env.Environment
	client    client.Client
	received  received
	manager   *Manager
	namespace string
	user      string
	notified  chan types.NamespacedName
}

var me = types.NamespacedName{Name: "me"}

func newStage(t *testing.T) *stage {
	e := env.Shared(t)
	s := &stage{T: t, env: e, user: "manager-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), notified: make(chan types.NamespacedName, 100)}
	s.client = check.Must(client.New(e.Config(), client.Options{}))(s)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	check.NoError(s, s.client.Create(t.Context(), namespace))
	s.namespace = namespace.Name
	config := check.Must(e.ConfigFor(s.user))(s)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil {
				response.Body = struct {
					io.Reader
					io.Closer
				}{io.TeeReader(response.Body, &s.received), response.Body}
			}
			return response, err
		})
	})
	target := check.Must(cluster.New(config, cluster.Options{}))(s)
	s.manager = newManager(func(owner types.NamespacedName) { s.notified <- owner }, runner(target.Objects(), 100*time.Millisecond))
	t.Cleanup(s.manager.Close)
	return s
}

// grant allows to watch Secrets: those of the names, or all.
func (s *stage) grant(names ...string) {
	s.Helper()
	check.NoError(s, s.client.Create(s.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "manager"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list", "watch"}, ResourceNames: names}},
	}))
	check.NoError(s, s.client.Create(s.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "manager"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "manager"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: s.user}},
	}))
}

func (s *stage) secret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, StringData: map[string]string{"token": canary}}
}

func (s *stage) create(name string) string {
	s.Helper()
	secret := s.secret(name)
	check.NoError(s, s.client.Create(s.Context(), secret))
	return secret.ResourceVersion
}

func (s *stage) update(name, text string) string {
	s.Helper()
	secret := s.secret(name)
	secret.StringData["more"] = text
	check.NoError(s, s.client.Update(s.Context(), secret))
	return secret.ResourceVersion
}

func (s *stage) set(versions map[string]string) {
	var references []Reference
	for name, version := range versions {
		references = append(references, Reference{Type: secrets, Namespace: s.namespace, Name: name, ResourceVersion: version})
	}
	s.manager.Set(me, references)
}

func (s *stage) expectWake(why string) {
	s.Helper()
	select {
	case <-s.notified:
	case <-time.After(patience):
		s.Fatalf("%s: no owner was notified; %+v", why, s.manager.Stats())
	}
}

func (s *stage) synced(count int) {
	s.Helper()
	for deadline := time.Now().Add(patience); s.manager.Stats().Synced != count; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.Fatalf("%+v", s.manager.Stats())
		}
	}
}

// quiet says that no owner was notified.
func (s *stage) quiet() {
	s.Helper()
	if len(s.notified) > 0 {
		s.Errorf("notified %d times for nothing", len(s.notified))
	}
}

func TestASecretIsWatchedByItsNameAloneAndItsDataStaysOnTheServer(t *testing.T) {
	s := newStage(t)
	s.grant("creds", "missing")
	observed := s.create("creds")
	s.create("hidden")
	s.set(map[string]string{"creds": observed, "missing": "", "hidden": "1"})
	s.synced(2)
	s.quiet()
	s.set(map[string]string{"creds": s.update("creds", "1"), "missing": ""})
	s.set(map[string]string{"creds": observed, "missing": ""}) // what a slow reconcile saw
	s.expectWake("an update")
	s.set(map[string]string{"creds": s.update("creds", "2"), "missing": s.create("missing")})
	check.NoError(s, s.client.Delete(t.Context(), s.secret("creds")))
	s.expectWake("a deletion")
	if text := s.received.String(); strings.Contains(text, canary) || !strings.Contains(text, "creds") {
		t.Errorf("received %d bytes; the data is in it: %t", len(text), strings.Contains(text, canary))
	}
}

func TestAWatchThatIsForbiddenStartsWhenItIsAllowed(t *testing.T) {
	s := newStage(t)
	observed := s.create("creds")
	s.set(map[string]string{"creds": observed})
	s.update("creds", "1")
	for deadline := time.Now().Add(patience); strings.Count(s.received.String(), "forbidden") < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it is not tried again")
		}
	}
	s.quiet()
	s.grant()
	s.expectWake("the rights")
}
