// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
)

func TestServedIsAskedForKindByKindWhereItHasTo(t *testing.T) {
	answers := map[string]string{
		"/version":               `{"gitVersion":"v1.25.0"}`,
		"/api":                   `{"kind":"APIVersions","versions":["v1"]}`,
		"/api/v1":                `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","kind":"Pod"},{"name":"pods/log","kind":"Pod"}]}`,
		"/apis":                  `{"kind":"APIGroupList","groups":[{"name":"a.example.com","versions":[{"version":"v1"}]},{"name":"broken.example.com","versions":[{"version":"v1"}]}]}`,
		"/apis/a.example.com/v1": `{"kind":"APIResourceList","groupVersion":"a.example.com/v1","resources":[{"name":"foos","kind":"Foo"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[strings.TrimSuffix(r.URL.Path, "/")]
		if !ok {
			w.WriteHeader(http.StatusForbidden)
			answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	target, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := target.Types().Served(t.Context())
	want := cluster.Served{Version: "v1.25.0", APIVersions: []string{"a.example.com/v1", "a.example.com/v1/Foo", "broken.example.com/v1", "v1", "v1/Pod"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
}
