// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"strings"
	"sync"
	"testing"
)

// canary is in all credentials of the tests and must be in no error.
const canary = "canary-0123456789"

// plain is a kubeconfig that is right; the tests change it.
const plain = `apiVersion: v1
kind: Config
current-context: main
clusters:
- name: there
  cluster:
    server: https://api.example.com:6443
users:
- name: me
  user:
    token: ` + canary + `
contexts:
- name: main
  context:
    cluster: there
    user: me
`

// with returns the plain kubeconfig with text replaced.
func with(t testing.TB, replacements ...string) string {
	t.Helper()
	text := plain
	for i := 0; i < len(replacements); i += 2 {
		if !strings.Contains(text, replacements[i]) {
			t.Fatalf("%q is not in the kubeconfig", replacements[i])
		}
		text = strings.Replace(text, replacements[i], replacements[i+1], 1)
	}
	return text
}

const (
	server = "server: https://api.example.com:6443"
	token  = "token: " + canary
)

// cluster and user add fields.
func cluster(t testing.TB, lines ...string) string {
	t.Helper()
	return with(t, server, strings.Join(append([]string{server}, lines...), "\n    "))
}

func user(t testing.TB, lines ...string) string {
	t.Helper()
	return with(t, token, strings.Join(append([]string{token}, lines...), "\n    "))
}

var certificates = sync.OnceValues(func() (certificate, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		panic(err)
	}
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	encode := func(kind string, der []byte) string {
		return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	return encode("CERTIFICATE", der), encode("PRIVATE KEY", privateDER)
})

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
