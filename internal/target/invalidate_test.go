// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/corbel-run/corbel/internal/cluster"
)

var configMaps = cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true}

// The address of a cluster is switched to another one that takes the same credentials,
// and all that shows is that a watch ends: the next one shows that everything is gone.
func TestNothingIsWrittenWhereTheNextWatchMayBeAboutAnotherCluster(t *testing.T) {
	var switched atomic.Bool
	change := make(chan struct{})
	there := serverOf(t, func(w http.ResponseWriter, request *http.Request) {
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
	})
	pool := New(nil, Options{DialPolicy: loopbackToo})
	defer pool.Close()
	access := Access{Kubeconfig: there}
	lease := patiently(t, pool, access)
	before := lease.Target
	recorded, err := before.UID(t.Context())
	if err != nil || recorded != "recorded" {
		t.Fatalf("%q, %v", recorded, err)
	}
	events, err := before.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
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
			synctest.Test(t, func(t *testing.T) {
				w := newTestPool(t, Options{Slots: 3})
				end := make(chan error, 3)
				w.answers(watchable(end, says(200, kubeSystem("there"))))
				_, _ = w.Acquire(remote("a"), component("one"))
				synctest.Wait()
				target := w.acquire(t, remote("a"), "one").Target // and stays
				for range 3 {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					events, err := target.Objects().Watch(ctx, configMaps, "", metav1.ListOptions{TimeoutSeconds: new(int64(1))})
					if err != nil {
						t.Fatal(err)
					}
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
				if n := w.requests(); n != tc.probes {
					t.Errorf("%d requests, want %d", n, tc.probes)
				}
				if again := w.acquire(t, remote("a"), "two"); again.Target != target || len(w.evicted) > 0 {
					t.Error("the target was evicted")
				}
			})
		})
	}
}

func TestAWatchThatIsRefusedWithdrawsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestPool(t, Options{})
		_, _ = w.Acquire(remote("a"), component("one"))
		synctest.Wait()
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
	synctest.Test(t, func(t *testing.T) {
		w := newTestPool(t, Options{})
		end := make(chan error, 1)
		w.answers(watchable(end, says(200, kubeSystem("there"))))
		_, _ = w.Acquire(remote("a"), component("one"))
		synctest.Wait()
		lease := w.acquire(t, remote("a"), "one")
		events, err := lease.Target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer events.Close()
		lease.Release()
		time.Sleep(verifiedFor)
		w.answers(func(request *http.Request) (*http.Response, error) {
			w.answers(says(200, kubeSystem("another")))
			end <- io.EOF
			_, _, _ = events.Decode()
			return says(200, kubeSystem("there"))(request)
		})
		_, _ = w.Acquire(remote("a"), component("one"))
		synctest.Wait()
		if _, err := w.Acquire(remote("a"), component("one")); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
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
			synctest.Test(t, func(t *testing.T) {
				w := newTestPool(t, Options{})
				w.answers(tc.before)
				_, _ = w.Acquire(remote("a"), component("one"))
				synctest.Wait()
				w.answers(tc.during)
				lease := w.acquire(t, remote("a"), "one")
				_, _ = lease.Target.UID(t.Context())
				lease.Release()
				w.answers(tc.after)
				time.Sleep(verifiedFor)
				_, _ = w.Acquire(remote("a"), component("one"))
				synctest.Wait()
				if kept := len(w.evicted) == 0; kept != tc.kept {
					t.Errorf("kept: %v", kept)
				}
			})
		})
	}
}
