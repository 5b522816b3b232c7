// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
)

var configMaps = cluster.Resource{
	GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Kind: "ConfigMap", Namespaced: true,
}

// serve returns a target with a server that answers every request with the handler.
func serve(t *testing.T, options cluster.Options, handler http.HandlerFunc) cluster.Target {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	target, err := cluster.New(&rest.Config{Host: server.URL}, options)
	if err != nil {
		t.Fatal(err)
	}
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
