// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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

func TestTheErrorOfAWatchIsAStatus(t *testing.T) {
	target := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}}`)
	})
	events, err := target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	what, object, err := events.Decode()
	if err != nil || what != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(object)) {
		t.Errorf("%s, %v, %v", what, object, err)
	}
}

// answering returns a target on a server that answers everything like this.
func answering(t *testing.T, answer http.HandlerFunc) cluster.Target {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	target, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{RequestTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
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
		t.Run(name, func(t *testing.T) {
			target := answering(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, tc.body) })
			events, err := target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer events.Close()
			if _, _, err = events.Decode(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%v", err)
			}
		})
	}
	target := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"SecretList","items":[]}`)
	})
	if _, err := target.Objects().List(t.Context(), configMaps, "", metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), "instead of a list of configmaps") {
		t.Error(err)
	}
}

func TestManyEventsOfAWatchAreNotBounded(t *testing.T) {
	const many = 20
	event := `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"` + strings.Repeat("a", 1<<20) + `"}}}`
	target := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush() // the client does not wait long for the start of an answer
		for range many {
			fmt.Fprint(w, event)
		}
	})
	events, err := target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	for i := range many {
		if what, _, err := events.Decode(); err != nil || what != watch.Added {
			t.Fatalf("event %d: %s, error %v", i, what, err)
		}
	}
	if _, _, err := events.Decode(); err != io.EOF {
		t.Errorf("at the end: error %v", err)
	}
}

func TestAnEventOfAWatchIsBounded(t *testing.T) {
	target := answering(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"type":"ADDED","object":{"apiVersion":"v1","kind":"ConfigMap","data":{"a":"`)
		for block := bytes.Repeat([]byte("a"), 1<<20); ; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	events, err := target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if _, _, err := events.Decode(); err == nil || !strings.Contains(err.Error(), "an event of a watch of configmaps has more than 16777216 bytes") {
		t.Errorf("%v", err)
	}
}

func TestAWatchThatTheServerDoesNotStartTimesOut(t *testing.T) {
	target := answering(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, err := target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{})
	if err == nil || !strings.Contains(err.Error(), "did not answer within 200ms") {
		t.Error(err)
	}
}

func TestAWatchIsBoundedByItsTime(t *testing.T) {
	target := answering(t, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	events, err := target.Objects().Watch(t.Context(), configMaps, "", metav1.ListOptions{TimeoutSeconds: new(int64(1))})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if _, _, err := events.Decode(); err == nil {
		t.Error("an event of a server that is silent")
	}
}
