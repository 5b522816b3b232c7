// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/kubeconfig"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/check"
)

var nowhere = &rest.Config{Host: "http://127.0.0.1:1"}

func TestAUserHasOneTarget(t *testing.T) {
	pool := New(nowhere, Options{})
	defer pool.Close()
	get := func(user string, groups ...string) cluster.Target {
		t.Helper()
		lease := check.Must(pool.Acquire(Access{User: user, Groups: groups}, component("one")))(t)
		defer lease.Release()
		return lease.Target
	}
	if get("") != get("") || get("jane", "a", "b") != get("jane", "b", "a", "b") {
		t.Error("the same user has two targets")
	}
	different := []cluster.Target{get(""), get("jane"), get("jane", "a"), get("jane", "b"), get("jane", "a", "b"), get("jane", `a""b`), get("janea"), get("jan", "ea")}
	for i, target := range different {
		for _, other := range different[:i] {
			if target == other {
				t.Errorf("user %d shares its target with another", i)
			}
		}
	}
	keys := map[key]bool{}
	for _, access := range []Access{{}, {Kubeconfig: []byte{}}, {Kubeconfig: []byte("x")}, {User: "x"}, {User: "kubeconfig"}, {Kubeconfig: []byte("x"), User: "x"}} {
		keys[access.key()] = true
	}
	check.SameNamed(t, "two accesses share a key", 6, len(keys))
}

// userServer answers with the user of the request, as the uid of a cluster.
func userServer(w http.ResponseWriter, request *http.Request) {
	user := request.Header.Get("Authorization") + "/" + request.Header.Get("Impersonate-User") + "/" + strings.Join(request.Header.Values("Impersonate-Group"), ",")
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, kubeSystem(user))
}

func TestTheUserIsSent(t *testing.T) {
	local := httptest.NewServer(http.HandlerFunc(userServer))
	defer local.Close()
	there := kubeconfigOf(secure(t, userServer))
	config := &rest.Config{Host: local.URL, BearerToken: "own"}
	pool := New(config, Options{DialPolicy: loopbackToo})
	defer pool.Close()
	for want, access := range map[string]Access{
		"Bearer own//":           {},
		"Bearer own/jane/a,b":    {User: "jane", Groups: []string{"b", "a"}},
		"Bearer secret//":        {Kubeconfig: there},
		"Bearer secret/jane/a,b": {Kubeconfig: there, User: "jane", Groups: []string{"b", "a"}},
	} {
		lease := patiently(t, pool, access)
		if user, err := lease.Target.UID(t.Context()); string(user) != want || err != nil {
			t.Errorf("got %q, %v, want %q", user, err, want)
		}
		lease.Release()
	}
	check.SameNamed(t, "the configuration was changed", "", config.Impersonate.UserName)
}

// settled asks for a lease until the pool is not busy.
func settled(t *testing.T, pool *Pool, access Access) (*Lease, error) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		lease, err := pool.Acquire(access, component("one"))
		if !errors.Is(err, ErrBusy) || time.Now().After(deadline) {
			return lease, err
		}
	}
}

func patiently(t *testing.T, pool *Pool, access Access) *Lease {
	t.Helper()
	return check.Must(settled(t, pool, access))(t)
}

func TestMistakesAreErrorsAndNeverTheLocalUser(t *testing.T) {
	pool := New(nowhere, Options{})
	for _, access := range []Access{{Groups: []string{"system:masters"}}, {Kubeconfig: []byte("{}")}, {Kubeconfig: []byte{}}} {
		if lease, err := pool.Acquire(access, component("one")); err == nil || lease != nil {
			t.Errorf("got %v, %v", lease, err)
		}
	}
	_, err := pool.Acquire(Access{Kubeconfig: []byte{}}, component("one"))
	if refused, ok := errors.AsType[*kubeconfig.Error](err); !ok || refused.Reason() != vocabulary.ReasonKubeconfigEmpty {
		t.Errorf("got %v", err)
	}
	none := New(nil, Options{})
	defer none.Close()
	if lease, err := none.Acquire(Access{}, component("one")); err == nil || lease != nil {
		t.Errorf("got %v, %v", lease, err)
	}
	pool.Close()
	if _, err := pool.Acquire(Access{}, component("one")); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestWithoutAPolicyInternalAddressesAreRefused(t *testing.T) {
	there := kubeconfigOf(secure(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") }))
	pool := New(nowhere, Options{})
	defer pool.Close()
	_, err := settled(t, pool, Access{Kubeconfig: there})
	if _, denied := errors.AsType[*cluster.AddressDeniedError](err); !denied {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsUnusedIsClosed(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *testPool) {
		go func() { _ = w.Run(t.Context()) }()
		for _, name := range []string{"a", "b", "c"} {
			_, _ = w.Acquire(remote(name), component(name))
		}
		synctest.Wait()
		w.answers(refuses)
		w.probe("dead", "dead")
		used := w.acquire(t, remote("a"), "a")
		for range 16 { // b is used again and again
			lease, _ := w.Acquire(remote("b"), component("b"))
			lease.Release()
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if len(w.entries) != 2 || len(w.evicted) != 2 {
			t.Errorf("%d targets are kept and %d were evicted", len(w.entries), len(w.evicted))
		}
		used.Release()
		w.requests()
		time.Sleep(time.Hour)
		if n := w.requests(); len(w.entries) != 0 || n > 60 {
			t.Errorf("an hour later there are %d targets; %d probes", len(w.entries), n)
		}
	})
}

func TestABusyTargetGoesOnlyIfNothingIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := map[cluster.Target]bool{}
		w := newTestPool(t, Options{Busy: func(target cluster.Target) bool { return busy[target] }})
		w.limit = 3
		enter := func(name string) {
			time.Sleep(time.Second)
			_, _ = w.Acquire(remote(name), component(name))
			synctest.Wait()
			if lease, err := w.Acquire(remote(name), component(name)); err == nil {
				lease.Release()
			}
		}
		kept := func(what string, names ...string) {
			t.Helper()
			for _, name := range names {
				if w.entries[remote(name).key()] == nil {
					t.Errorf("%s: %s is not kept", what, name)
				}
			}
		}
		for _, name := range []string{"a", "b"} {
			enter(name)
			busy[w.entries[remote(name).key()].target] = true
		}
		enter("idle")
		enter("c")
		kept("one was idle", "a", "b", "c")
		busy[w.entries[remote("c").key()].target] = true
		enter("d")
		kept("the longest unused goes if all are busy", "b", "c", "d")
	})
}

// Without it, the others wait until they are requeued for another reason.
func TestASlotThatAComponentCannotUseIsPassedOn(t *testing.T) {
	for name, test := range map[string]struct {
		breaks   func(w *testPool, e *entry)
		requeued string
	}{
		"its cluster is dead": {func(w *testPool, e *entry) {
			w.answers(refuses)
			w.invalidate(e)
		}, "c b"}, // b is requeued by the probe that fails
		"its cluster must not be used": {func(w *testPool, e *entry) {
			w.Pool.mu.Lock()
			defer w.Pool.mu.Unlock()
			e.health.refusal = ErrLocal
		}, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{Remote: 1}, func(t *testing.T, w *testPool) {
				for _, name := range []string{"a", "b", "c"} {
					_, _ = w.Acquire(remote(name), component(name))
				}
				synctest.Wait()
				used := w.acquire(t, remote("a"), "a")
				for _, name := range []string{"b", "c"} {
					w.busy(t, name, name)
				}
				w.drainRequeued()
				used.Release()
				w.requeues(t, "b")
				test.breaks(w, w.entries[remote("b").key()])
				if _, err := w.Acquire(remote("b"), component("b")); err == nil {
					t.Error("b uses its cluster")
				}
				synctest.Wait()
				w.requeues(t, test.requeued)
			})
		})
	}
}

func TestTheSlotOfAComponentThatIsGoneIsPassedOn(t *testing.T) {
	inBubble(t, Options{Slots: 1}, func(t *testing.T, w *testPool) {
		w.probe("a", "first")
		used := w.acquire(t, remote("a"), "first")
		for _, name := range []string{"gone", "second"} {
			w.busy(t, "a", name)
		}
		w.drainRequeued()
		used.Release()
		w.requeues(t, "gone")
		w.ForgetComponent(component("gone"))
		w.requeues(t, "second")
	})
}

// patience is how long a test waits for what should happen at once.
const patience = 20 * time.Second

// Evicted waits for background users of the target, and their last requests may fail.
func TestWhatEndsWithATargetReportsToThePool(t *testing.T) {
	for name, evict := range map[string]func(t *testing.T, w *testPool){
		"it is unused": func(_ *testing.T, w *testPool) {
			w.Pool.mu.Lock()
			w.entries[remote("a").key()].usedAt = time.Now().Add(-unusedFor)
			w.Pool.mu.Unlock()
			w.sweep()
		},
		"others need the room": func(_ *testing.T, w *testPool) {
			_, _ = w.Acquire(remote("b"), component("b"))
		},
		"its address leads to another cluster": func(_ *testing.T, w *testPool) {
			w.answers(says(200, kubeSystem("another")))
			w.invalidate(w.entries[remote("a").key()])
			_, _ = w.Acquire(remote("a"), component("one"))
		},
		"the pool is closed": func(_ *testing.T, w *testPool) { w.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newTestPool(t, Options{})
			w.limit = 1
			lease := patiently(t, w.Pool, remote("a"))
			gone, called, returned := lease.Target, make(chan struct{}), make(chan struct{})
			lease.Release()
			closes := name == "the pool is closed"
			w.options.Evicted = func(target cluster.Target) {
				if target != gone {
					return
				}
				defer close(called)
				reported := w.breaks(t, target)
				// Only Close waits.
				if reported && !closes && within(t, returned, "the eviction waits for the end of the target") {
					w.answers(says(200, kubeSystem("another")))
					next := patiently(t, w.Pool, remote("a"))
					defer next.Release()
					if next.Target == gone {
						t.Error("a lease of the target that ends was given")
					}
				}
			}
			evict(t, w)
			close(returned)
			if closes {
				select {
				case <-called:
				default:
					t.Error("Close returned before all calls of Evicted had returned")
				}
			}
			within(t, called, "Evicted was not called")
		})
	}
}

// breaks lets a watch of the target fail in the background, and reports whether it did.
func (w *testPool) breaks(t *testing.T, target cluster.Target) bool {
	w.answers(refuses)
	failed := make(chan struct{})
	go func() {
		defer close(failed)
		if _, err := target.Objects().Watch(t.Context(), namespaces, "", metav1.ListOptions{}); err == nil {
			t.Error("the watch did not fail")
		}
	}()
	return within(t, failed, "a watch cannot report its failure")
}

func within(t *testing.T, happened <-chan struct{}, otherwise string) bool {
	t.Helper()
	select {
	case <-happened:
		return true
	case <-time.After(patience):
		t.Error(otherwise)
		return false
	}
}

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

// secure returns the configuration of a server with TLS.
func secure(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

// kubeconfigOf returns the kubeconfig of a server.
func kubeconfigOf(server *rest.Config) []byte {
	return kubeconfigFor(server.Host, base64.StdEncoding.EncodeToString(server.CAData), "secret")
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

// inBubble runs a test with a pool in a bubble.
func inBubble(t *testing.T, options Options, test func(t *testing.T, w *testPool)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newTestPool(t, options)) })
}

// probe lets a component ask for a cluster, and waits until the cluster has answered.
func (w *testPool) probe(cluster, name string) {
	_, _ = w.Acquire(remote(cluster), component(name))
	synctest.Wait()
}

func (w *testPool) busy(t *testing.T, cluster, name string) {
	t.Helper()
	if _, err := w.Acquire(remote(cluster), component(name)); !errors.Is(err, ErrBusy) {
		t.Errorf("%s: got %v", name, err)
	}
}

// requeues compares the components that were requeued since it was last called.
func (w *testPool) requeues(t *testing.T, want string) {
	t.Helper()
	check.SameNamed(t, "requeued", want, w.drainRequeued())
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
	lease := check.Must(w.Acquire(access, component(name)))(t)
	return lease
}
