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
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
)

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
