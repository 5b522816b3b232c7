// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
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

func TestASlowServerHoldsUpNoCallerForLong(t *testing.T) {
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

// authority returns the certificate of a new certificate authority.
func authority(t *testing.T) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
}

func TestAnAddressIsTheServerAndItsAuthorities(t *testing.T) {
	one, other := authority(t), authority(t)
	config := func(host string, authorities ...[]byte) *rest.Config {
		c := &rest.Config{Host: host, BearerToken: "secret"}
		for _, a := range authorities {
			c.CAData = append(c.CAData, a...)
		}
		return c
	}
	address := func(c *rest.Config) string {
		target, err := cluster.New(c, cluster.Options{ByAddress: true})
		if err != nil {
			t.Fatal(err)
		}
		defer target.Close()
		return string(target.Address())
	}
	for name, tc := range map[string]struct {
		a, b       *rest.Config
		equal, one bool
	}{
		"the same":              {config("https://a.example.com", one), config("https://a.example.com", one), true, true},
		"another form of it":    {config("https://a.example.com", one, other), config("https://A.example.com:443/", other, []byte("\n"), one), true, true},
		"another user":          {config("https://a.example.com", one), &rest.Config{Host: "https://a.example.com", TLSClientConfig: rest.TLSClientConfig{CAData: one}}, true, true},
		"another server":        {config("https://a.example.com", one), config("https://b.example.com", one), false, true},
		"another port":          {config("https://a.example.com", one), config("https://a.example.com:6443", other), false, false},
		"another path":          {config("https://a.example.com/x", one), config("https://a.example.com/y", other), false, false},
		"another authority":     {config("https://a.example.com", one), config("https://a.example.com", other), false, true},
		"one authority more":    {config("https://a.example.com", one), config("https://b.example.com", one, other), false, true},
		"those of the system":   {config("https://a.example.com"), config("https://b.example.com"), false, false},
		"no authority, and one": {config("https://a.example.com"), config("https://a.example.com", one), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			if equal := address(tc.a) == address(tc.b); equal != tc.equal {
				t.Errorf("%s and %s are equal: %v", address(tc.a), address(tc.b), equal)
			}
			if one, err := cluster.MayBeOne(tc.a, tc.b); one != tc.one || err != nil {
				t.Errorf("may be one: %v, %v", one, err)
			}
		})
	}
}

func TestAClusterWithAnUnreadableUIDIsIdentifiedByItsAddressIfThatIsAllowed(t *testing.T) {
	refuse := func(code int, reason string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"`+reason+`"}`)
		}
	}
	for name, tc := range map[string]struct {
		answer    http.HandlerFunc
		byAddress bool
		known     bool
	}{
		"forbidden":                    {refuse(403, "Forbidden"), true, true},
		"forbidden, and not accepted":  {refuse(403, "Forbidden"), false, false},
		"not authenticated":            {refuse(401, "Unauthorized"), true, false},
		"too busy":                     {refuse(503, "ServiceUnavailable"), true, false},
		"there is no such namespace":   {refuse(404, "NotFound"), true, false},
		"something that is no cluster": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, cluster.Options{ByAddress: tc.byAddress}, tc.answer)
			uid, err := target.UID(t.Context())
			if known := err == nil; known != tc.known || known != cluster.IsAddress(uid) || known && uid != target.Address() {
				t.Errorf("got %q, %v", uid, err)
			}
		})
	}
}
