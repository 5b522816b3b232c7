// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"encoding/base64"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

func TestTheLocalClusterIsNoTargetOfAKubeconfig(t *testing.T) {
	local := httptest.NewServer(answering("here"))
	defer local.Close()
	there := serverOf(t, answering("here"))
	pool := New(&rest.Config{Host: local.URL}, Options{DialPolicy: loopbackToo})
	defer pool.Close()
	untilError(t, pool, Access{Kubeconfig: there}, ErrLocal)
}

func TestTheLocalClusterIsKnownByTheOptionWhereItMayNotBeRead(t *testing.T) {
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
