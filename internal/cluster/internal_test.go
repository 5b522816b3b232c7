// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/test/check"
)

// A refusal is not for ever: the right to read the uid is granted, or the server has just
// started and does not know any rights yet.
func TestAClusterThatIsKnownByItsAddressIsAskedForItsUIDAgain(t *testing.T) {
	var granted atomic.Bool
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if granted.Load() {
			_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"there"}}`)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
	}))
	defer server.Close()
	made := check.Must(New(&rest.Config{Host: server.URL}, Options{ByAddress: true}))(t)
	defer made.Close()
	ask := func(want string, asked int64) {
		t.Helper()
		if uid, err := made.UID(t.Context()); string(uid) != want || err != nil || requests.Load() != asked {
			t.Errorf("got %q (%v) with %d requests, want %q with %d", uid, err, requests.Load(), want, asked)
		}
	}
	address := string(made.Address())
	ask(address, 1)
	granted.Store(true)
	ask(address, 1)
	later := made.(*target)
	later.refused = later.refused.Add(-refusedFor)
	ask("there", 2)
	ask("there", 2)
}

func TestKindsOfAnAPIThatIsDownAreRemembered(t *testing.T) {
	var memory servedMemory
	memory = memory.renewed("v1", map[string][]string{"m/v1": {"Node", "Pod"}, "gone/v1": {"X"}})
	for range 2 {
		memory = memory.renewed("v1", map[string][]string{"m/v1": nil, "never/v1": nil})
	}
	want := []string{"m/v1", "m/v1/Node", "m/v1/Pod", "never/v1"}
	check.Equal(t, want, memory.answer.APIVersions)
}

func TestTypesThatAProgramAddsToTheSchemeOfClientGoAreNotBuiltIn(t *testing.T) {
	scheme.Scheme.AddKnownTypeWithName(schema.GroupVersionKind{Group: "mine.example.com", Version: "v1", Kind: "Mine"}, &unstructured.Unstructured{})
	for group, want := range map[string]bool{"mine.example.com": false, "": true, "apps": true, "apiextensions.k8s.io": true} {
		check.EqualNamed(t, group, want, IsBuiltIn(group))
	}
}
