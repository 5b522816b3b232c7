// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestFaults goes through the lifecycle of TestLifecycle once without a failure and then once for
// each kind of failure of the server, and expects the same end. The kinds are: the answers 500, 429
// and (to changes) 409, timeouts after which the request was carried out, and connections that are
// dropped before. Each request, which is a method and an object, fails once in each of the three
// stages of the lifecycle: half of them when they are sent for the first time, and the other half
// for the second time, if they are sent again. A fixed hash decides which.
func (o Operator[T]) TestFaults(t testing.TB, obj T, edit func(T)) {
	t.Helper()
	reference := o.prepare(t, obj).play(t, edit, &connection{}, nil)
	for _, kind := range faultKinds {
		run(t, kind.name, func(t testing.TB) {
			t.Helper()
			f := &faults{kind: kind}
			defer func() {
				struck, last := f.report()
				t.Logf("%d requests failed with %s", struck, kind.name)
				if t.Failed() {
					t.Logf("the last request that failed is %s; %s", last, alone(t))
				}
			}()
			i := o.prepare(t, obj)
			f.namespace = i.Namespace
			i.play(t, edit, &connection{faults: f}, reference)
		})
	}
}

// faultKind is a way in which a request fails.
type faultKind struct {
	name string
	// applies reports whether a request can fail this way; nil means all.
	applies func(q request) bool
	// fail is called in place of sending the request.
	fail func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)
}

var faultKinds = []faultKind{
	{name: "internal errors (500)", fail: answer(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
	{name: "too many requests (429)", fail: answer(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)},
	{
		name:    "conflicts (409)",
		applies: func(q request) bool { return q.isWrite() && q.method != http.MethodPost },
		fail:    answer(http.StatusConflict, metav1.StatusReasonConflict),
	},
	{name: "timeouts", fail: func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if response, err := send(); err == nil {
			_ = response.Body.Close()
		}
		return nil, timeoutError{}
	}},
	{name: "dropped connections", fail: func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		return nil, syscall.ECONNRESET
	}},
}

// timeoutError is the error of a client that has waited too long.
type timeoutError struct{}

func (timeoutError) Error() string   { return "the test lets the request time out" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// answer returns a function that answers with an error in place of the server.
func answer(code int, reason metav1.StatusReason) func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
	return func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reason, Message: "the test lets the request fail",
		})
		if err != nil {
			return nil, err
		}
		return &http.Response{
			Request: r, StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	}
}

// faults decide which requests of a process fail. They are safe for concurrent use.
type faults struct {
	kind      faultKind
	namespace string // does not count for the decision

	mu     sync.Mutex
	stage  int            // of the lifecycle
	seen   map[string]int // how often a request was sent in this stage
	struck int
	last   request
}

// nextStage lets requests that have failed before fail again.
func (f *faults) nextStage() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stage, f.seen = f.stage+1, nil
}

// strikes reports whether a request fails: that depends on the request, and on how often it
// was sent before. None fails without end, so the operator makes progress.
func (f *faults) strikes(q request) bool {
	if f.kind.applies != nil && !f.kind.applies(q) {
		return false
	}
	namespace := q.namespace
	if namespace == f.namespace {
		namespace = ""
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	key := fmt.Sprintf("%d %s %s %s %s %s", f.stage, q.method, q.resource, namespace, q.name, q.subresource)
	if f.seen == nil {
		f.seen = map[string]int{}
	}
	f.seen[key]++
	if at := 1 + int(sha256.Sum256([]byte(f.kind.name + key))[0]%2); f.seen[key] != at {
		return false
	}
	f.struck, f.last = f.struck+1, q
	return true
}

// report returns how many requests failed, and the last of them.
func (f *faults) report() (struck int, last request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck, f.last
}
