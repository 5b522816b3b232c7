// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
)

func component(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

// kubeSystem is what a cluster answers to a probe.
func kubeSystem(uid string) string {
	return `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"kube-system","uid":"` + uid + `"}}`
}

// kubeconfigFor returns a kubeconfig.
func kubeconfigFor(server, authority, token string) []byte {
	return fmt.Appendf(nil, `{current-context: x, contexts: [{name: x, context: {cluster: x, user: x}}],
  clusters: [{name: x, cluster: {server: '%s', certificate-authority-data: '%s'}}], users: [{name: x, user: {token: '%s'}}]}`, server, authority, token)
}

// serverOf returns the kubeconfig of a server.
func serverOf(t *testing.T, handler http.HandlerFunc, states ...func(net.Conn, http.ConnState)) (kubeconfig []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	for _, state := range states {
		server.Config.ConnState = state
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return kubeconfigFor(server.URL, base64.StdEncoding.EncodeToString(authority), "secret")
}

func answering(uid string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, kubeSystem(uid))
	}
}

// testPool is a pool with targets in memory: time in it is that of the bubble
// of testing/synctest.
type testPool struct {
	*Pool
	mu       sync.Mutex
	answer   func(request *http.Request) (*http.Response, error)
	asked    []time.Time
	requeued []types.NamespacedName
	evicted  []cluster.Target
}

func (w *testPool) RoundTrip(request *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.asked = append(w.asked, time.Now())
	answer := w.answer
	w.mu.Unlock()
	return answer(request)
}

func (w *testPool) CloseIdleConnections() {}

// answers makes clusters answer the same from now on.
func (w *testPool) answers(answer func(*http.Request) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// requests returns how many there were since it was last called.
func (w *testPool) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.asked = nil }()
	return len(w.asked)
}

// drainRequeued returns the components that were requeued since it was last called.
func (w *testPool) drainRequeued() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for _, component := range w.requeued {
		names = append(names, component.Name)
	}
	w.requeued = nil
	return strings.Join(names, " ")
}

func newTestPool(t *testing.T, options Options) *testPool {
	t.Helper()
	w := &testPool{}
	options.Requeue = func(component types.NamespacedName) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.requeued = append(w.requeued, component)
	}
	options.Evicted = func(target cluster.Target) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.evicted = append(w.evicted, target)
	}
	w.Pool = New(nil, options)
	w.Pool.make = func(config *rest.Config, _ cluster.Options) (cluster.Target, error) {
		var transport http.RoundTripper = w
		if config.WrapTransport != nil {
			transport = config.WrapTransport(w)
		}
		return cluster.New(&rest.Config{Host: config.Host, Transport: transport}, cluster.Options{})
	}
	w.answers(says(200, kubeSystem("there")))
	t.Cleanup(w.Close)
	return w
}

// says is a cluster that answers always the same.
func says(code int, body string) func(*http.Request) (*http.Response, error) {
	return func(request *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: code, Request: request, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)),
		}, nil
	}
}

// hangs is a cluster that never answers.
func hangs(request *http.Request) (*http.Response, error) {
	<-request.Context().Done()
	return nil, request.Context().Err()
}

func refuses(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

func remote(name string) Access {
	return Access{Kubeconfig: kubeconfigFor("https://"+name+".example.com", "", "secret")}
}

// enter returns a lease or fails the test.
func (w *testPool) acquire(t *testing.T, access Access, name string) *Lease {
	t.Helper()
	lease, err := w.Acquire(access, component(name))
	if err != nil {
		t.Fatal(err)
	}
	return lease
}
