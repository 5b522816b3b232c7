// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/cluster"
)

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

func TestAClusterThatKeepsItsUIDToItselfIsKnownByItsAddressIfThatIsWanted(t *testing.T) {
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
		"forbidden, and not wanted":    {refuse(403, "Forbidden"), false, false},
		"not who we say we are":        {refuse(401, "Unauthorized"), true, false},
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
