// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/check"
)

func TestAClusterIsUsedOnlyAfterItAnswered(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *testPool) {
		w.busy(t, "a", "one")
		synctest.Wait()
		w.requeues(t, "one")
		lease := w.acquire(t, remote("a"), "one")
		if _, err := lease.Target.UID(t.Context()); err != nil {
			t.Error(err)
		}
		lease.Release()
		check.SameNamed(t, "requests", 2, w.requests())
		time.Sleep(verifiedFor)
		w.busy(t, "a", "one")
	})
}

func TestFewUseAClusterAtTheSameTime(t *testing.T) {
	inBubble(t, Options{Slots: 2}, func(t *testing.T, w *testPool) {
		w.probe("a", "first")
		w.drainRequeued()
		one, two := w.acquire(t, remote("a"), "one"), w.acquire(t, remote("a"), "two")
		for _, name := range []string{"three", "four", "three"} {
			w.busy(t, "a", name)
		}
		one.Release()
		one.Release()
		w.requeues(t, "three")
		w.acquire(t, remote("a"), "three").Release()
		two.Release()
		w.requeues(t, "four")
	})
}

func TestOtherClustersLeaveRoomForTheLocalOne(t *testing.T) {
	inBubble(t, Options{Remote: 1}, func(t *testing.T, w *testPool) {
		for _, name := range []string{"a", "b"} {
			_, _ = w.Acquire(remote(name), component(name))
		}
		synctest.Wait()
		w.drainRequeued()
		lease := w.acquire(t, remote("a"), "a")
		w.busy(t, "b", "b")
		lease.Release()
		w.requeues(t, "b")
		w.acquire(t, remote("b"), "b").Release()
	})
}

func TestRecoveryFromALongOutage(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *testPool) {
		w.answers(hangs)
		start := time.Now()
		w.busy(t, "a", "one")
		time.Sleep(probeTimeout)
		synctest.Wait()
		w.requeues(t, "one")
		var unreachable *UnreachableError
		for time.Since(start) < 2*time.Hour {
			if _, err := w.Acquire(remote("a"), component("one")); !errors.As(err, &unreachable) ||
				err.Error() != "the target cluster cannot be reached: it did not answer within 10s" {
				t.Fatalf("after %s: %v", time.Since(start), err)
			}
			time.Sleep(time.Minute)
		}
		if n := w.requests(); n < 170 || n > 230 { // every 37 to 40 seconds
			t.Errorf("%d probes in two hours", n)
		}
		w.requeues(t, "")
		w.answers(says(200, kubeSystem("there")))
		time.Sleep(probeTimeout + 30*time.Second)
		synctest.Wait()
		w.requeues(t, "one")
		w.acquire(t, remote("a"), "one").Release()
	})
}

func TestAReconcileInAClusterThatHangsEndsSoon(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *testPool) {
		w.probe("a", "one")
		lease := w.acquire(t, remote("a"), "one")
		w.answers(hangs)
		start := time.Now()
		for range 20 {
			if _, err := lease.Target.Objects().Get(t.Context(), namespaces, "", "kube-system"); err == nil {
				t.Error("it answered")
			}
		}
		if waited := time.Since(start); waited > 31*time.Second {
			t.Errorf("20 requests took %s", waited)
		}
		lease.Release()
		synctest.Wait() // the probe hangs, too
		w.answers(says(200, kubeSystem("there")))
		if _, err := w.Acquire(remote("a"), component("one")); err == nil {
			t.Error("the cluster is verified although it just hung")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		w.acquire(t, remote("a"), "one").Release()
	})
}

func TestWhatEndsTheVerification(t *testing.T) {
	canceled := func(r *http.Request) (*http.Response, error) { return nil, context.Canceled }
	for name, tc := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		ends   bool
	}{
		"an answer":         {says(200, kubeSystem("there")), false},
		"a refusal":         {says(403, `{"kind":"Status","apiVersion":"v1","code":403,"reason":"Forbidden"}`), false},
		"a wish of our own": {canceled, false},
		"no connection":     {refuses, true},
		"an answer that is torn": {func(r *http.Request) (*http.Response, error) {
			response, err := says(200, "")(r)
			response.Body = &tornBody{}
			return response, err
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *testPool) {
				w.probe("a", "one")
				lease := w.acquire(t, remote("a"), "one")
				w.answers(tc.answer)
				_, _ = lease.Target.Objects().Get(t.Context(), namespaces, "", "kube-system")
				lease.Release()
				lease, err := w.Acquire(remote("a"), component("one"))
				if (err != nil) != tc.ends {
					t.Errorf("got %v", err)
				}
				lease.Release()
			})
		})
	}
}

type tornBody struct{}

func (*tornBody) Read([]byte) (int, error) { return 0, errors.New("connection reset by peer") }
func (*tornBody) Close() error             { return nil }

func TestWhatProvesNothing(t *testing.T) {
	redirect := says(302, "")
	for name, tc := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		text   string
	}{
		"the balancer of a cluster that is gone": {says(503, "no backend"), "unable to handle the request"},
		"too much to do":                         {says(429, `{"kind":"Status","apiVersion":"v1","code":429,"reason":"TooManyRequests","message":"too many"}`), "too many"},
		"a redirect":                             {redirect, "a redirect to somewhere else"},
		"something else":                         {says(200, "<html>"), "is not a JSON object"},
		"another object":                         {says(200, strings.Replace(kubeSystem("x"), "kube-system", "other", 1)), "the server answered with"},
		"no server":                              {refuses, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *testPool) {
				w.answers(tc.answer)
				_, _ = w.Acquire(remote("a"), component("one"))
				time.Sleep(2 * probeTimeout)
				synctest.Wait()
				_, err := w.Acquire(remote("a"), component("one"))
				if _, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// A kubeconfig must not be a way into the local cluster, also if it may not read the uid.
func TestTheLocalClusterIsNoTargetOfAKubeconfig(t *testing.T) {
	forbidden := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}
	plain := func(handler http.HandlerFunc) *rest.Config {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return &rest.Config{Host: server.URL}
	}
	here, unreadable, unreadableLocal := secure(t, answering("here")), secure(t, forbidden), plain(forbidden)
	elsewhere := &rest.Config{Host: "https://here.example.com"}
	sameAuthority := &rest.Config{Host: elsewhere.Host, TLSClientConfig: unreadable.TLSClientConfig}
	for name, tc := range map[string]struct {
		local, there *rest.Config
		option       types.UID
		want         error
	}{
		"the same uid":                               {plain(answering("here")), here, "", ErrLocal},
		"the uid of the option":                      {unreadableLocal, here, "here", ErrLocal},
		"another uid than that of the option":        {unreadableLocal, here, "elsewhere", nil},
		"a local cluster that may not be read":       {unreadableLocal, here, "", nil},
		"another cluster, which may not be read":     {elsewhere, unreadable, "", nil},
		"the same server, which may not be read":     {&rest.Config{Host: unreadable.Host}, unreadable, "", ErrPerhapsLocal},
		"the same authority, and it may not be read": {sameAuthority, unreadable, "", ErrPerhapsLocal},
	} {
		t.Run(name, func(t *testing.T) {
			pool := New(tc.local, Options{DialPolicy: loopbackToo, LocalUID: tc.option})
			defer pool.Close()
			if _, err := settled(t, pool, Access{Kubeconfig: kubeconfigOf(tc.there)}); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func loopbackToo(context.Context, string, netip.AddrPort) error { return nil }

func TestMessagesDoNotChangeWithEveryAttempt(t *testing.T) {
	around := func(err error) error {
		return fmt.Errorf("probe: %w", &url.Error{Op: "Get", URL: "https://a", Err: err})
	}
	address := func(port int) net.Addr { return &net.TCPAddr{IP: net.IPv4(203, 0, 113, 7), Port: port} }
	for want, make := range map[string]func(attempt int) error{
		"read 203.0.113.7:6443: connection reset": func(attempt int) error {
			return &net.OpError{Op: "read", Net: "tcp", Source: address(30000 + attempt), Addr: address(6443), Err: errors.New("connection reset")}
		},
		"look up api.example.com: the name cannot be resolved at the moment": func(attempt int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "api.example.com", Err: fmt.Sprintf("read udp 127.0.0.1:%d: timeout", attempt), IsTimeout: true}}
		},
		"look up api.example.com: there is no such name": func(int) error {
			return &net.DNSError{Name: "api.example.com", IsNotFound: true}
		},
		"the certificate of the server has expired or is not valid yet": func(int) error {
			return x509.CertificateInvalidError{Cert: &x509.Certificate{}, Reason: x509.Expired, Detail: time.Now().String()}
		},
		"dial 127.0.0.1:443: connections to the address 127.0.0.1 are not allowed: no": func(int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443},
				Err: &cluster.AddressDeniedError{Address: netip.MustParseAddrPort("127.0.0.1:443"), Err: errors.New("no")}}
		},
	} {
		for attempt := range 2 {
			err := describe(around(make(attempt)))
			if _, ok := errors.AsType[*url.Error](err); err.Error() != want || !ok {
				t.Errorf("got %q, want %q", err, want)
			}
		}
	}
	plain := errors.New("plain")
	if err := describe(plain); err != plain {
		t.Errorf("got %v", err)
	}
}

var configMaps = cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

// The address of a cluster is switched to another one that takes the same credentials,
// and all that shows is that a watch ends: the next one shows that everything is gone.
func TestNothingIsWrittenWhereTheNextWatchMayBeAboutAnotherCluster(t *testing.T) {
	var switched atomic.Bool
	change := make(chan struct{})
	there := kubeconfigOf(secure(t, func(w http.ResponseWriter, request *http.Request) {
		switch {
		case request.Method != http.MethodGet:
			t.Errorf("%s %s reached the other cluster", request.Method, request.URL)
			w.WriteHeader(http.StatusTeapot)
		case request.URL.Query().Get("watch") != "":
			w.(http.Flusher).Flush()
			<-change
		case switched.Load():
			answering("another")(w, request)
		default:
			answering("recorded")(w, request)
		}
	}))
	pool := New(nil, Options{DialPolicy: loopbackToo})
	defer pool.Close()
	access := Access{Kubeconfig: there}
	lease := patiently(t, pool, access)
	before := lease.Target
	recorded, err := before.UID(t.Context())
	if err != nil || recorded != "recorded" {
		t.Fatalf("%q, %v", recorded, err)
	}
	events := check.Must(before.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{}))(t)
	defer events.Close()
	lease.Release()
	switched.Store(true)
	close(change)
	if _, _, err := events.Decode(); !errors.Is(err, io.EOF) {
		t.Fatalf("the watch ended with %v", err)
	}
	for range 3 { // reconciles
		lease := patiently(t, pool, access)
		uid, err := lease.Target.UID(t.Context())
		if uid == recorded {
			object := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "a"}}}
			_, _ = lease.Target.Objects().Create(t.Context(), configMaps, object, "")
		}
		if uid != "another" || err != nil || lease.Target == before {
			t.Errorf("a reconcile gets the cluster %q, %v", uid, err)
		}
		lease.Release()
	}
}

// streamed is the body of a watch.
type streamed struct {
	ctx    context.Context
	end    <-chan error
	closed chan struct{}
	close  func()
}

func (s *streamed) Read([]byte) (int, error) {
	select {
	case err := <-s.end:
		return 0, err
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-s.closed:
		return 0, http.ErrBodyReadAfterClose
	}
}

func (s *streamed) Close() error { s.close(); return nil }

// watchable is a cluster with watches that end with what is sent to the channel.
func watchable(end <-chan error, others func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(request *http.Request) (*http.Response, error) {
		response, err := others(request)
		if err == nil && request.URL.Query().Get("watch") != "" {
			closed := make(chan struct{})
			response.Body = &streamed{request.Context(), end, closed, sync.OnceFunc(func() { close(closed) })}
		}
		return response, err
	}
}

func TestAnEndOfWatchesCostsOneProbeUnlessItIsAWishOfOurOwn(t *testing.T) {
	ends := func(err error) func(chan<- error, context.CancelFunc, watch.Decoder) {
		return func(end chan<- error, _ context.CancelFunc, _ watch.Decoder) { end <- err }
	}
	for name, tc := range map[string]struct {
		end    func(end chan<- error, cancel context.CancelFunc, events watch.Decoder)
		probes int
	}{
		"by the server":                        {ends(io.EOF), 1},
		"a torn connection":                    {ends(errors.New("connection reset by peer")), 1},
		"a server that does not end it":        {func(chan<- error, context.CancelFunc, watch.Decoder) { time.Sleep(time.Minute) }, 1},
		"it is not needed any more":            {func(_ chan<- error, cancel context.CancelFunc, _ watch.Decoder) { cancel() }, 0},
		"it is closed":                         {func(_ chan<- error, _ context.CancelFunc, events watch.Decoder) { events.Close() }, 0},
		"it is closed just before it would be": {func(end chan<- error, cancel context.CancelFunc, _ watch.Decoder) { cancel(); end <- io.EOF }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{Slots: 3}, func(t *testing.T, w *testPool) {
				end := make(chan error, 3)
				w.answers(watchable(end, says(200, kubeSystem("there"))))
				w.probe("a", "one")
				target := w.acquire(t, remote("a"), "one").Target // and stays
				for range 3 {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					events := check.Must(target.Objects().Watch(ctx, configMaps, "", metav1.ListOptions{TimeoutSeconds: new(int64(1))}))(t)
					go func() {
						_, _, _ = events.Decode()
						events.Close()
					}()
					synctest.Wait()
					tc.end(end, cancel, events)
					synctest.Wait()
					select {
					case <-end: // came too late
					default:
					}
				}
				if n := w.requests(); n != 5 { // a probe, the uid of the target, and the watches
					t.Errorf("%d requests before a component acquires the target", n)
				}
				answer := make(chan struct{}) // to the probe, after both have asked
				w.answers(func(request *http.Request) (*http.Response, error) {
					<-answer
					return says(200, kubeSystem("there"))(request)
				})
				for _, name := range []string{"two", "three"} {
					lease, err := w.Acquire(remote("a"), component(name))
					if busy := errors.Is(err, ErrBusy); busy != (tc.probes > 0) {
						t.Errorf("got %v", err)
					}
					lease.Release()
				}
				close(answer)
				synctest.Wait()
				check.SameNamed(t, "requests", tc.probes, w.requests())
				if again := w.acquire(t, remote("a"), "two"); again.Target != target || len(w.evicted) > 0 {
					t.Error("the target was evicted")
				}
			})
		})
	}
}

func TestAWatchThatIsRefusedWithdrawsNothing(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *testPool) {
		w.probe("a", "one")
		lease := w.acquire(t, remote("a"), "one")
		w.answers(says(410, `{"kind":"Status","apiVersion":"v1","code":410,"reason":"Expired"}`))
		if _, err := lease.Target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{}); err == nil {
			t.Error("it was not refused")
		}
		lease.Release()
		w.acquire(t, remote("a"), "one").Release()
	})
}

func TestAProbeProvesNothingIfAWatchEndsMeanwhile(t *testing.T) {
	inBubble(t, Options{}, func(t *testing.T, w *testPool) {
		end := make(chan error, 1)
		w.answers(watchable(end, says(200, kubeSystem("there"))))
		w.probe("a", "one")
		lease := w.acquire(t, remote("a"), "one")
		events := check.Must(lease.Target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{}))(t)
		defer events.Close()
		lease.Release()
		time.Sleep(verifiedFor)
		w.answers(func(request *http.Request) (*http.Response, error) {
			w.answers(says(200, kubeSystem("another")))
			end <- io.EOF
			_, _, _ = events.Decode()
			return says(200, kubeSystem("there"))(request)
		})
		w.probe("a", "one")
		w.busy(t, "a", "one")
		time.Sleep(2 * probeBase)
		synctest.Wait()
		if len(w.evicted) != 1 || w.evicted[0] != lease.Target {
			t.Errorf("%d evicted", len(w.evicted))
		}
	})
}

func TestATargetIsKeptOnlyWhileTheClusterReturnsTheUIDThatItRemembers(t *testing.T) {
	forbidden := says(403, `{"kind":"Status","apiVersion":"v1","code":403,"reason":"Forbidden"}`)
	there, another := says(200, kubeSystem("there")), says(200, kubeSystem("another"))
	for name, tc := range map[string]struct {
		before, during, after func(*http.Request) (*http.Response, error)
		kept                  bool
	}{
		"the same":                                    {there, there, there, true},
		"never readable":                              {forbidden, forbidden, forbidden, true},
		"not readable any more":                       {there, there, forbidden, false},
		"not readable for the first probe":            {forbidden, there, there, true},
		"not readable for the first probe, then both": {forbidden, there, another, false},
		"readable for a reconcile only":               {forbidden, there, forbidden, false},
		"readable for probes only":                    {there, forbidden, another, false},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, Options{}, func(t *testing.T, w *testPool) {
				w.answers(tc.before)
				w.probe("a", "one")
				w.answers(tc.during)
				lease := w.acquire(t, remote("a"), "one")
				_, _ = lease.Target.UID(t.Context())
				lease.Release()
				w.answers(tc.after)
				time.Sleep(verifiedFor)
				w.probe("a", "one")
				check.SameNamed(t, "kept", tc.kept, len(w.evicted) == 0)
			})
		})
	}
}
