// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/check"
)

var configMaps = cluster.Resource{
	GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true,
}

// serve returns a target with a server that answers every request with the handler.
func serve(t *testing.T, options cluster.Options, handler http.HandlerFunc) cluster.Target {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	target := check.Must(cluster.New(&rest.Config{Host: server.URL}, options))(t)
	t.Cleanup(target.Close)
	return target
}

func answer(w http.ResponseWriter, contentType string, code int, body string) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body))
}

const settings = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop"}}`

func notFound(details string) string {
	return `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404,"details":{` + details + `}}`
}

func TestAbsenceNeedsAProof(t *testing.T) {
	for name, tc := range map[string]struct {
		contentType, body string
		code              int
		absent            bool
	}{
		"a Status that names the object":         {"application/json", notFound(`"name":"settings","kind":"configmaps"`), 404, true},
		"a Status that names another object":     {"application/json", notFound(`"name":"other","kind":"configmaps"`), 404, false},
		"a Status that names the namespace":      {"application/json", notFound(`"name":"settings","kind":"namespaces"`), 404, false},
		"a Status of another group":              {"application/json", notFound(`"name":"settings","kind":"configmaps","group":"x"`), 404, false},
		"a Status that names nothing":            {"application/json", notFound(``), 404, false},
		"the server's answer to an unknown path": {"text/plain", "404 page not found\n", 404, false},
		"a page of a proxy":                      {"text/html", "<html>not found</html>", 404, false},
		"some JSON":                              {"application/json", `{"message":"not found"}`, 404, false},
		"nothing":                                {"application/json", "", 404, false},
		"an empty object":                        {"application/json", "{}", 200, false},
		"a page instead of an object":            {"text/html", "<html>welcome</html>", 200, false},
		"another object":                         {"application/json", strings.Replace(settings, "settings", "other", 1), 200, false},
		"another kind":                           {"application/json", strings.Replace(settings, "ConfigMap", "Secret", 1), 200, false},
		"half an object":                         {"application/json", settings[:30], 200, false},
		"an object beyond the limit": {"application/json",
			strings.Replace(settings, `"kind"`, `"x":"`+strings.Repeat("x", 2000)+`","kind"`, 1), 200, false},
		"a redirect": {"text/html", "", 302, false},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, cluster.Options{MaxResponseBytes: 1000}, func(w http.ResponseWriter, request *http.Request) {
				if tc.code == http.StatusFound {
					if request.URL.Path == "/elsewhere" {
						t.Error("the redirect was followed")
					}
					w.Header().Set("Location", "/elsewhere")
				}
				answer(w, tc.contentType, tc.code, tc.body)
			})
			_, err := target.Objects().Get(t.Context(), configMaps, "shop", "settings")
			if err == nil || cluster.IsNotFound(err, configMaps, "settings") != tc.absent {
				t.Errorf("got %v", err)
			}
			if len(err.Error()) > 3000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestAServerCannotMakeUsWaitForLong(t *testing.T) {
	var asked atomic.Int64
	target := serve(t, cluster.Options{RequestTimeout: time.Second}, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Retry-After", "86400")
		answer(w, "application/json", http.StatusTooManyRequests, `{}`)
	})
	start := time.Now()
	_, err := target.Objects().Get(t.Context(), configMaps, "shop", "settings")
	if err == nil || time.Since(start) > 5*time.Second || asked.Load() > 2 {
		t.Errorf("after %s and %d requests: got %v", time.Since(start), asked.Load(), err)
	}
}

func TestDiscoveryThatIsNotToBeTrustedProvesNothing(t *testing.T) {
	groups := func(versions string) string {
		return `{"kind":"APIGroupList","groups":[{"name":"apps","versions":[` + versions + `]}]}`
	}
	for name, tc := range map[string]struct {
		version, groups string // bodies; empty is 404 of a proxy
		proof           bool
	}{
		"not found, and not listed":      {groups: groups(`{"version":"v1beta1"}`), proof: true},
		"not found, but listed":          {groups: groups(`{"version":"v1"}`)},
		"not found, and no list":         {},
		"not found, and an empty list":   {groups: `{"kind":"APIGroupList","groups":[]}`},
		"not found, and some page":       {groups: "<html>"},
		"a list without the kind":        {version: `{"kind":"APIResourceList","groupVersion":"apps/v1"}`, proof: true},
		"a list of another version":      {version: `{"kind":"APIResourceList","groupVersion":"apps/v2"}`},
		"some JSON instead of a list":    {version: `{}`},
		"some page instead of a list":    {version: `<html>`},
		"an answer of the wrong kind":    {version: `{"kind":"Status"}`},
		"a list that ends in the middle": {version: `{"kind":"APIResourceList","groupVersion":"apps/v1"`},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, cluster.Options{}, func(w http.ResponseWriter, request *http.Request) {
				body := map[string]string{"/apis/apps/v1": tc.version, "/apis": tc.groups}[request.URL.Path]
				if body == "" {
					answer(w, "text/html", 404, "<html>not found</html>")
					return
				}
				answer(w, "application/json", 200, body)
			})
			_, err := target.Types().Resolve(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
			if err == nil || isNotServed(err) != tc.proof {
				t.Errorf("got %v", err)
			}
		})
	}
}

// watched returns the events of a watch that a server answers like this.
func watched(t *testing.T, answer http.HandlerFunc) watch.Decoder {
	t.Helper()
	target := serve(t, cluster.Options{RequestTimeout: 200 * time.Millisecond}, answer)
	events := check.Must(target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{}))(t)
	t.Cleanup(events.Close)
	return events
}

func TestAServerThatAnswersSomethingElseToAWatch(t *testing.T) {
	for name, tc := range map[string]struct{ body, want string }{
		"no JSON":      {`{"type":"ADDED","object":"x"}`, "holds no JSON object"},
		"another kind": {`{"type":"ADDED","object":{"apiVersion":"v1","kind":"Secret"}}`, `is about a "Secret"`},
		"no status":    {`{"type":"ERROR","object":7}`, "is no Status"},
		"no event":     {`[1]`, "something else than an event in a watch of configmaps"},
		"nonsense":     {`nonsense`, "something else than an event in a watch of configmaps"},
		"the end":      {``, io.EOF.Error()},
		"cut":          {`{"type":"ADDED","object":{"apiVer`, io.ErrUnexpectedEOF.Error()},
	} {
		events := watched(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) })
		if _, _, err := events.Decode(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	what, object, err := watched(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	}).Decode()
	if err != nil || what != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(object)) {
		t.Errorf("a status: %s, %v, %v", what, object, err)
	}
	target := serve(t, cluster.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"SecretList","items":[]}`)
	})
	check.Fails(t, check.ErrorOf(target.Objects().List(t.Context(), configMaps, "", metav1.ListOptions{})), "instead of a list of configmaps")
}

func TestManyEventsOfAWatchAreNotBounded(t *testing.T) {
	const many = 20
	event := `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"` + strings.Repeat("a", 1<<20) + `"}}}`
	events := watched(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush() // the client does not wait long for the start of an answer
		for range many {
			fmt.Fprint(w, event)
		}
	})
	for i := range many {
		if what, _, err := events.Decode(); err != nil || what != watch.Added {
			t.Fatalf("event %d: %s, error %v", i, what, err)
		}
	}
	if _, _, err := events.Decode(); err != io.EOF {
		t.Errorf("at the end: error %v", err)
	}
}

func TestASlowOrEndlessServerHoldsUpNoCallerForLong(t *testing.T) {
	get := func(t *testing.T, target cluster.Target) error {
		_, err := target.Objects().Get(t.Context(), configMaps, "shop", "settings")
		return err
	}
	startWatch := func(t *testing.T, target cluster.Target) error {
		_, err := target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
		return err
	}
	nextEvent := func(t *testing.T, target cluster.Target) error {
		events := check.Must(target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{TimeoutSeconds: new(int64(1))}))(t)
		defer events.Close()
		if _, _, err := events.Decode(); err != nil {
			return fmt.Errorf("the watch ended: %w", err)
		}
		return nil
	}
	endless := func(start string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			_, err := fmt.Fprint(w, start)
			for block := bytes.Repeat([]byte("a"), 1<<20); err == nil; {
				_, err = w.Write(block)
			}
		}
	}
	silent := func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		ask     func(*testing.T, cluster.Target) error
		timeout time.Duration // of a request; 0 is the default, which no machine is too slow for
		want    string
	}{
		"a byte now and then": {func(w http.ResponseWriter, request *http.Request) {
			for request.Context().Err() == nil {
				_, _ = w.Write([]byte(" "))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}, get, 200 * time.Millisecond, "the server did not answer within 200ms"},
		"no answer":                 {silent, get, 200 * time.Millisecond, "the server did not answer within 200ms"},
		"an endless answer":         {endless(""), get, 0, "larger than 1048576 bytes"},
		"a watch without an answer": {silent, startWatch, 200 * time.Millisecond, "did not answer within 200ms"},
		"a watch without events": {func(w http.ResponseWriter, request *http.Request) {
			w.(http.Flusher).Flush()
			silent(w, request)
		}, nextEvent, time.Second, "the watch ended: "}, // by the deadline, or by the end of the connection that follows from it
		"an endless event": {
			endless(`{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"`), nextEvent, 0,
			"an event of a watch of configmaps has more than 16777216 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := secureServer(t, tc.handler)
			target := check.Must(cluster.New(config, cluster.Options{DialPolicy: allow, RequestTimeout: tc.timeout, MaxResponseBytes: 1 << 20}))(t)
			defer target.Close()
			err := tc.ask(t, target)
			check.Fails(t, err, tc.want)
		})
	}
}

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
	target := check.Must(cluster.New(config, cluster.Options{DialPolicy: policy}))(t)
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
		other := check.Must(rest.HTTPClientFor(target.Config()))(t)
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
	check.Must(target.Objects().Get(t.Context(), configMaps, "shop", "settings"))(t)
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

// authority returns the certificate of a new certificate authority.
func authority(t *testing.T) []byte {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true}
	certificate := check.Must(x509.CreateCertificate(rand.Reader, template, template, public, private))(t)
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
		target := check.Must(cluster.New(c, cluster.Options{ByAddress: true}))(t)
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
