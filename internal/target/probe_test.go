// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
)

func TestAClusterIsUsedOnlyAfterItAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestPool(t, Options{})
		if _, err := w.Acquire(remote("a"), component("one")); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v", err)
		}
		synctest.Wait()
		if requeued := w.drainRequeued(); requeued != "one" {
			t.Errorf("requeued: %q", requeued)
		}
		lease := w.acquire(t, remote("a"), "one")
		if _, err := lease.Target.UID(t.Context()); err != nil {
			t.Error(err)
		}
		lease.Release()
		if n := w.requests(); n != 2 {
			t.Errorf("%d requests", n)
		}
		time.Sleep(verifiedFor)
		if _, err := w.Acquire(remote("a"), component("one")); !errors.Is(err, ErrBusy) {
			t.Errorf("long after the probe: got %v", err)
		}
	})
}

func TestFewUseAClusterAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestPool(t, Options{Slots: 2})
		_, _ = w.Acquire(remote("a"), component("first"))
		synctest.Wait()
		w.drainRequeued()
		one, two := w.acquire(t, remote("a"), "one"), w.acquire(t, remote("a"), "two")
		for _, name := range []string{"three", "four", "three"} {
			if _, err := w.Acquire(remote("a"), component(name)); !errors.Is(err, ErrBusy) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		one.Release()
		one.Release()
		if requeued := w.drainRequeued(); requeued != "three" {
			t.Errorf("requeued: %q", requeued)
		}
		w.acquire(t, remote("a"), "three").Release()
		two.Release()
		if requeued := w.drainRequeued(); requeued != "four" {
			t.Errorf("requeued then: %q", requeued)
		}
	})
}

func TestOtherClustersLeaveRoomForTheLocalOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestPool(t, Options{Remote: 1})
		for _, name := range []string{"a", "b"} {
			_, _ = w.Acquire(remote(name), component(name))
		}
		synctest.Wait()
		w.drainRequeued()
		lease := w.acquire(t, remote("a"), "a")
		if _, err := w.Acquire(remote("b"), component("b")); !errors.Is(err, ErrBusy) {
			t.Errorf("got %v", err)
		}
		lease.Release()
		if requeued := w.drainRequeued(); requeued != "b" {
			t.Errorf("requeued: %q", requeued)
		}
		w.acquire(t, remote("b"), "b").Release()
	})
}

func TestRecoveryFromALongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestPool(t, Options{})
		w.answers(hangs)
		start := time.Now()
		if _, err := w.Acquire(remote("a"), component("one")); !errors.Is(err, ErrBusy) {
			t.Fatalf("got %v", err)
		}
		time.Sleep(probeTimeout)
		synctest.Wait()
		if requeued := w.drainRequeued(); requeued != "one" {
			t.Errorf("the component cannot report that the cluster is unreachable; requeued: %q", requeued)
		}
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
		if requeued := w.drainRequeued(); requeued != "" {
			t.Errorf("requeued during the outage: %s", requeued)
		}
		w.answers(says(200, kubeSystem("there")))
		time.Sleep(probeTimeout + 30*time.Second)
		synctest.Wait()
		if requeued := w.drainRequeued(); requeued != "one" {
			t.Errorf("40 seconds after the outage, requeued: %q", requeued)
		}
		w.acquire(t, remote("a"), "one").Release()
	})
}

func TestAReconcileInAClusterThatHangsEndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestPool(t, Options{})
		_, _ = w.Acquire(remote("a"), component("one"))
		synctest.Wait()
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
			synctest.Test(t, func(t *testing.T) {
				w := newTestPool(t, Options{})
				_, _ = w.Acquire(remote("a"), component("one"))
				synctest.Wait()
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
			synctest.Test(t, func(t *testing.T) {
				w := newTestPool(t, Options{})
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

func TestTheLocalClusterIsNoTargetOfAKubeconfig(t *testing.T) {
	local := httptest.NewServer(answering("here"))
	defer local.Close()
	there := serverOf(t, answering("here"))
	pool := New(&rest.Config{Host: local.URL}, Options{DialPolicy: loopbackToo})
	defer pool.Close()
	untilError(t, pool, Access{Kubeconfig: there}, ErrLocal)
}

func TestTheLocalClusterIsIdentifiedByTheOptionWhereItMayNotBeRead(t *testing.T) {
	for _, test := range []struct {
		name   string
		option types.UID
		want   error
	}{{"the uid", "here", ErrLocal}, {"another uid", "elsewhere", nil}, {"none", "", nil}} {
		t.Run(test.name, func(t *testing.T) {
			local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
			}))
			defer local.Close()
			there := serverOf(t, answering("here"))
			pool := New(&rest.Config{Host: local.URL}, Options{DialPolicy: loopbackToo, LocalUID: test.option})
			defer pool.Close()
			untilError(t, pool, Access{Kubeconfig: there}, test.want)
		})
	}
}

// A kubeconfig that may not read the uid must not be a way into the local cluster.
func TestAClusterWithoutAUIDIsComparedWithTheLocalOneByItsAddress(t *testing.T) {
	forbidden := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(forbidden))
	defer server.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	there := kubeconfigFor(server.URL, base64.StdEncoding.EncodeToString(authority), "secret")
	for name, tc := range map[string]struct {
		local *rest.Config
		want  error
	}{
		"another cluster":    {&rest.Config{Host: "https://here.example.com"}, nil},
		"the same server":    {&rest.Config{Host: server.URL}, ErrPerhapsLocal},
		"the same authority": {&rest.Config{Host: "https://here.example.com", TLSClientConfig: rest.TLSClientConfig{CAData: authority}}, ErrPerhapsLocal},
	} {
		t.Run(name, func(t *testing.T) {
			pool := New(tc.local, Options{DialPolicy: loopbackToo})
			defer pool.Close()
			untilError(t, pool, Access{Kubeconfig: there}, tc.want)
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
