// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/cluster"
)

func TestInternalAddressesAreDenied(t *testing.T) {
	denied := map[string][]string{
		"metadata": {
			"169.254.169.254", "169.254.170.2", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd20:ce::254",
			"::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::169.254.169.254", "64:ff9b:1::a9fe:a9fe",
		},
		"machine":   {"127.0.0.1", "127.255.255.254", "::1", "0.0.0.0", "0.1.2.3", "::", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"},
		"link":      {"169.254.0.1", "fe80::1", "fe80::1%eth0", "::ffff:169.254.3.4"},
		"no server": {"224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "ff02::1"},
	}
	for class, addresses := range denied {
		class = strings.TrimPrefix(class, "no ")
		for _, address := range addresses {
			err := cluster.DenyInternal(t.Context(), "tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 443))
			if err == nil || !strings.Contains(err.Error(), class) {
				t.Errorf("%s: %v", address, err)
			}
		}
	}
	for _, address := range []string{
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "203.0.113.7", "8.8.8.8", "169.253.255.255", "128.0.0.1",
		"2001:db8::1", "fd12:3456::1", "2600::", "64:ff9b::808:808", "2002:808:808::1",
	} {
		if err := cluster.DenyInternal(t.Context(), "tcp", netip.AddrPortFrom(netip.MustParseAddr(address), 443)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// secureServer answers over TLS; the configuration trusts it.
func secureServer(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority}}
}

func allow(context.Context, string, netip.AddrPort) error { return nil }

func confined(t *testing.T, config *rest.Config, policy cluster.DialPolicy) cluster.Target {
	t.Helper()
	target, err := cluster.New(config, cluster.Options{DialPolicy: policy})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

func TestThePolicyIsAskedBeforeAnythingIsSent(t *testing.T) {
	config := secureServer(t, func(http.ResponseWriter, *http.Request) { t.Error("a request was sent") })
	byName := rest.CopyConfig(config)
	byName.Host = strings.Replace(config.Host, "127.0.0.1", "localhost", 1)
	for _, config := range []*rest.Config{config, byName} {
		target := confined(t, config, cluster.DenyInternal)
		_, err := target.UID(t.Context())
		denied, ok := errors.AsType[*cluster.AddressDeniedError](err)
		if !ok || !denied.Address.Addr().IsLoopback() || !strings.Contains(err.Error(), "are not allowed: it is the machine that the operator runs on") {
			t.Errorf("%s: got %v", config.Host, err)
		}
		other, err := rest.HTTPClientFor(target.Config())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Get(config.Host); err == nil {
			t.Error("a client of the target's configuration is not held to the policy")
		}
	}
}

func TestThePolicyIsAskedAgainWhenANameMeansAnotherAddress(t *testing.T) {
	config := secureServer(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		answer(w, "application/json", 200, settings)
	})
	var dials atomic.Int64
	target := confined(t, config, func(context.Context, string, netip.AddrPort) error {
		if dials.Add(1) > 1 {
			return errors.New("not any more")
		}
		return nil
	})
	if _, err := target.Objects().Get(t.Context(), configMaps, "shop", "settings"); err != nil {
		t.Fatal(err)
	}
	target.Close()
	_, err := target.Objects().Get(t.Context(), configMaps, "shop", "settings")
	if _, ok := errors.AsType[*cluster.AddressDeniedError](err); !ok {
		t.Errorf("got %v", err)
	}
}

func TestConfinedTargetsUseNoProxy(t *testing.T) {
	target := confined(t, &rest.Config{Host: "https://api.example.com"}, allow)
	request := httptest.NewRequest(http.MethodGet, "https://api.example.com", nil)
	if proxy, err := target.Config().Proxy(request); proxy != nil || err != nil {
		t.Errorf("got %v, %v", proxy, err)
	}
}

func TestAPolicyThatCannotHoldIsAMistake(t *testing.T) {
	for _, config := range []*rest.Config{
		{Host: "https://x", Transport: http.DefaultTransport},
		{Host: "https://x", Proxy: http.ProxyFromEnvironment},
		{Host: "https://x", Dial: (&net.Dialer{}).DialContext},
		confined(t, &rest.Config{Host: "https://x"}, allow).Config(),
	} {
		if target, err := cluster.New(config, cluster.Options{DialPolicy: allow}); err == nil || target != nil {
			t.Errorf("got %v, %v", target, err)
		}
	}
}

func TestARedirectIsRefusedInASentence(t *testing.T) {
	config := secureServer(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/elsewhere" {
			t.Error("the redirect was followed")
		}
		http.Redirect(w, request, "/elsewhere", http.StatusTemporaryRedirect)
	})
	target := confined(t, config, allow)
	_, err := target.Objects().Get(t.Context(), configMaps, "shop", "settings")
	if _, ok := errors.AsType[*cluster.ProtocolError](err); !ok || !strings.Contains(err.Error(), "the server answers 307, a redirect to somewhere else, which is not followed") {
		t.Errorf("got %v", err)
	}
}

func TestASlowServerHoldsUpNobodyForLong(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a byte now and then": func(w http.ResponseWriter, request *http.Request) {
			for request.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		},
		"no answer": func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() },
	} {
		t.Run(name, func(t *testing.T) {
			config := secureServer(t, handler)
			target, err := cluster.New(config, cluster.Options{DialPolicy: allow, RequestTimeout: 200 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			defer target.Close()
			_, err = target.Objects().Get(t.Context(), configMaps, "shop", "settings")
			if err == nil || !strings.Contains(err.Error(), "the server did not answer within 200ms") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAnEndlessAnswerIsCut(t *testing.T) {
	config := secureServer(t, func(w http.ResponseWriter, request *http.Request) {
		for request.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	target, err := cluster.New(config, cluster.Options{DialPolicy: allow, MaxResponseBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	_, err = target.Objects().Get(t.Context(), configMaps, "shop", "settings")
	if _, ok := errors.AsType[*cluster.ProtocolError](err); !ok || !strings.Contains(err.Error(), "larger than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}
