// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAClusterIsUsedOnlyAfterItAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		if _, err := w.Enter(remote("a"), waiter("one")); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v", err)
		}
		synctest.Wait()
		if woken := w.takeWoken(); woken != "one" {
			t.Errorf("woken: %q", woken)
		}
		lease := w.enter(t, remote("a"), "one")
		if _, err := lease.Target.UID(t.Context()); err != nil {
			t.Error(err)
		}
		lease.Release()
		if n := w.requests(); n != 2 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(provenFor)
		if _, err := w.Enter(remote("a"), waiter("one")); !errors.Is(err, ErrBusy) {
			t.Errorf("long after the probe: got %v", err)
		}
	})
}

func TestFewUseAClusterAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Slots: 2})
		_, _ = w.Enter(remote("a"), waiter("first"))
		synctest.Wait()
		w.takeWoken()
		one, two := w.enter(t, remote("a"), "one"), w.enter(t, remote("a"), "two")
		for _, name := range []string{"three", "four", "three"} {
			if _, err := w.Enter(remote("a"), waiter(name)); !errors.Is(err, ErrBusy) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		one.Release()
		one.Release()
		if woken := w.takeWoken(); woken != "three" {
			t.Errorf("woken: %q", woken)
		}
		w.enter(t, remote("a"), "three").Release()
		two.Release()
		if woken := w.takeWoken(); woken != "four" {
			t.Errorf("woken then: %q", woken)
		}
	})
}

func TestOtherClustersLeaveRoomForTheLocalOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{Remote: 1})
		for _, name := range []string{"a", "b"} {
			_, _ = w.Enter(remote(name), waiter(name))
		}
		synctest.Wait()
		w.takeWoken()
		lease := w.enter(t, remote("a"), "a")
		if _, err := w.Enter(remote("b"), waiter("b")); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
		lease.Release()
		if woken := w.takeWoken(); woken != "b" {
			t.Errorf("woken: %q", woken)
		}
		w.enter(t, remote("b"), "b").Release()
	})
}

func TestRecoveryFromALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.answers(hangs)
		start := time.Now()
		if _, err := w.Enter(remote("a"), waiter("one")); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(probeTimeout)
		synctest.Wait()
		if woken := w.takeWoken(); woken != "one" {
			t.Errorf("nobody can say that the cluster cannot be reached; woken: %q", woken)
		}
		var unreachable *UnreachableError
		for time.Since(start) < 2*time.Hour {
			if _, err := w.Enter(remote("a"), waiter("one")); !errors.As(err, &unreachable) ||
				err.Error() != "the target cluster cannot be reached: it did not answer within 10s" {
				t.Fatalf("after %s: %v", time.Since(start), err)
			}
			time.Sleep(time.Minute)
		}
		if n := w.requests(); n < 170 || n > 230 { // every 37 to 40 seconds
			t.Errorf("%d probes in two hours", n)
		}
		if woken := w.takeWoken(); woken != "" {
			t.Errorf("woken during the outage: %s", woken)
		}
		w.answers(says(200, kubeSystem("there")))
		time.Sleep(probeTimeout + 30*time.Second)
		synctest.Wait()
		if woken := w.takeWoken(); woken != "one" {
			t.Errorf("40 seconds after the outage, woken: %q", woken)
		}
		w.enter(t, remote("a"), "one").Release()
	})
}

func TestWhoeverIsInAClusterThatHangsIsOutSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		_, _ = w.Enter(remote("a"), waiter("one"))
		synctest.Wait()
		lease := w.enter(t, remote("a"), "one")
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
		if _, err := w.Enter(remote("a"), waiter("one")); err == nil {
			t.Error("the cluster is trusted although it just hung")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		w.enter(t, remote("a"), "one").Release()
	})
}

func TestWhatEndsTheTrust(t *testing.T) {
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
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				_, _ = w.Enter(remote("a"), waiter("one"))
				synctest.Wait()
				lease := w.enter(t, remote("a"), "one")
				w.answers(tc.answer)
				_, _ = lease.Target.Objects().Get(t.Context(), namespaces, "", "kube-system")
				lease.Release()
				lease, err := w.Enter(remote("a"), waiter("one"))
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
		"nobody is there":                        {refuses, "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, Options{})
				w.answers(tc.answer)
				_, _ = w.Enter(remote("a"), waiter("one"))
				time.Sleep(2 * probeTimeout)
				synctest.Wait()
				_, err := w.Enter(remote("a"), waiter("one"))
				if _, ok := errors.AsType[*UnreachableError](err); !ok || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestARefusalIsAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		w.answers(says(401, `{"kind":"Status","apiVersion":"v1","code":401,"reason":"Unauthorized"}`))
		_, _ = w.Enter(remote("a"), waiter("one"))
		synctest.Wait()
		w.enter(t, remote("a"), "one").Release()
	})
}

func TestAnAddressThatLeadsToAnotherClusterNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, Options{})
		enter := func() (*Lease, error) {
			if lease, err := w.Enter(remote("a"), waiter("one")); err == nil {
				return lease, nil // an earlier probe has just ended
			}
			synctest.Wait()
			return w.Enter(remote("a"), waiter("one"))
		}
		lease, err := enter()
		if err != nil {
			t.Fatal(err)
		}
		before := lease.Target
		lease.Release()
		w.answers(says(200, kubeSystem("another")))
		time.Sleep(provenFor)
		if _, err = enter(); err == nil { // the old target is let go of
			t.Fatal("the other cluster is taken for the same")
		}
		if lease, err = enter(); err != nil {
			t.Fatal(err)
		}
		defer lease.Release()
		if uid, err := lease.Target.UID(t.Context()); lease.Target == before || uid != "another" || err != nil {
			t.Errorf("uid %s, %v", uid, err)
		}
		if len(w.evicted) != 1 || w.evicted[0] != before {
			t.Errorf("%d evicted", len(w.evicted))
		}
	})
}
