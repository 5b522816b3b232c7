// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/wire"
)

// busyServer refuses the first requests of each kind with 429 and asks to come again
// after a second.
type busyServer struct {
	lock sync.Mutex
	left map[string]int // by method and the end of the path
	sent map[string]int
}

func (s *busyServer) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !s.refuses(r.Method + " " + r.URL.Path) {
			return next.RoundTrip(r)
		}
		if r.Body != nil {
			_ = r.Body.Close()
		}
		const status = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":"the server has too much to do"}`
		return &http.Response{
			Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Retry-After": {"1"}, "Content-Type": {"application/json"}},
			Body:   io.NopCloser(strings.NewReader(status)), ContentLength: int64(len(status)),
		}, nil
	})
}

func (s *busyServer) refuses(request string) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	for kind := range s.left {
		method, end, _ := strings.Cut(kind, " ")
		if !strings.HasPrefix(request, method+" ") || !strings.HasSuffix(request, end) {
			continue
		}
		s.sent[kind]++
		s.left[kind]--
		return s.left[kind] >= 0
	}
	return false
}

func (s *busyServer) expect(t *testing.T, want map[string]int) {
	t.Helper()
	s.lock.Lock()
	defer s.lock.Unlock()
	if got := fmt.Sprint(s.sent); got != fmt.Sprint(want) {
		t.Errorf("sent %v, want %v", got, want)
	}
}

func TestAServerThatHasTooMuchToDoIsWaitedForAndNothingIsWrong(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	// One request more is refused than is sent in one reconcile.
	create, status := "POST /configmaps", "PATCH /main/status"
	server := &busyServer{left: map[string]int{create: 6, status: 1}, sent: map[string]int{}}
	manager := newManagerVia(t, b.env, b.user, server.wrap)
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.check(r.SetupWithManager(manager))
	b.start(manager)
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1"}})
	var states []string
	b.comesTo(func() (string, bool) {
		w := b.get()
		state, reason, message := w.Status.GetState()
		seen := fmt.Sprintf("%s, %s: %s", state, reason, message)
		if !slices.Contains(states, seen) {
			states = append(states, seen)
		}
		return seen, w.Status.IsReady()
	})
	for _, state := range states {
		if strings.HasPrefix(state, "Error") {
			t.Errorf("it is an error: %s", state)
		}
	}
	if !slices.ContainsFunc(states, func(s string) bool {
		return strings.HasPrefix(s, "Pending, Retrying") && strings.Contains(s, "too much to do")
	}) {
		t.Errorf("no component says what it waits for: %q", states)
	}
	server.expect(t, map[string]int{create: 7, status: 4})
}
