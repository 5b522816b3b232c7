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

	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

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
