// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/env"
)

// overload refuses requests for ConfigMaps with 429, and counts all of them. It
// does not ask for a retry, so that nothing is sent twice.
type overload struct {
	lock    sync.Mutex
	refused string // method; nothing is refused if it is empty
	text    string
	sent    map[string]int // by method
}

func (o *overload) wrap(next http.RoundTripper) http.RoundTripper {
	return &overloaded{o, next}
}

type overloaded struct {
	*overload
	next http.RoundTripper
}

func (o *overloaded) RoundTrip(request *http.Request) (*http.Response, error) {
	if !strings.Contains(request.URL.Path, "/configmaps") {
		return o.next.RoundTrip(request)
	}
	o.lock.Lock()
	o.sent[request.Method]++
	refused, text := o.refused == request.Method, o.text
	o.lock.Unlock()
	if !refused {
		return o.next.RoundTrip(request)
	}
	if request.Body != nil {
		_ = request.Body.Close()
	}
	status := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","code":429,"message":%q}`, text)
	return &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: request,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(status)), ContentLength: int64(len(status)),
	}, nil
}

func (o *overloaded) WrappedRoundTripper() http.RoundTripper { return o.next }

// refuse starts to refuse a method, and resets the counts.
func (o *overload) refuse(method, text string) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.refused, o.text, o.sent = method, text, map[string]int{}
}

func (o *overload) count(method string) int {
	o.lock.Lock()
	defer o.lock.Unlock()
	return o.sent[method]
}

// overload gives the bench a new engine with a server that may be overloaded.
func (b *bench) overload(t *testing.T) *overload {
	t.Helper()
	o := &overload{sent: map[string]int{}}
	config := env.Shared(t).Config()
	config.Wrap(o.wrap)
	target, err := cluster.New(config, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	if b.engine, err = reconciler.NewReconciler(engineName, target, keyed(reconciler.ReconcilerOptions{})); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestAServerThatHasTooMuchToDoIsNotAskedForEachObject(t *testing.T) {
	const objects, few = 150, 60 // as many as are under way at once, and some
	configs := make([]client.Object, objects)
	for i := range configs {
		configs[i] = config(fmt.Sprintf("config-%03d", i), "1")
	}
	b := newBench(t)
	server := b.overload(t)
	server.refuse(http.MethodPost, "too many requests")
	_, err := b.apply(configs...)
	if !apierrors.IsTooManyRequests(err) {
		t.Fatalf("got %v", err)
	}
	if created, read := server.count(http.MethodPost), server.count(http.MethodGet); created == 0 || created > few || read > 0 {
		t.Errorf("%d creations were tried, and %d objects were read", created, read)
	}
	server.refuse("", "")
	b.mustApply(configs...)

	server = b.overload(t)
	server.refuse(http.MethodGet, "too many requests")
	outcome, err := b.apply(configs...)
	if err != nil || len(outcome.Waiting) != objects {
		t.Errorf("waits for %d objects, %v", len(outcome.Waiting), err)
	}
	if read := server.count(http.MethodGet); read == 0 || read > few {
		t.Errorf("%d reads were tried", read)
	}
	server.refuse("", "")
	b.mustApply(configs...)
}

func TestAWebhookThatHasTooMuchToDoHoldsUpOnlyWhatItIsAskedAbout(t *testing.T) {
	const objects = 100
	configs := make([]client.Object, objects)
	for i := range configs {
		configs[i] = config(fmt.Sprintf("config-%03d", i), "1")
	}
	b := newBench(t)
	server := b.overload(t)
	server.refuse(http.MethodPost, `admission webhook "quota.example.com" denied the request: later`)
	_, err := b.apply(configs...)
	if err == nil {
		t.Fatalf("got %v", err)
	}
	if created := server.count(http.MethodPost); created < objects {
		t.Errorf("%d of %d creations were tried", created, objects)
	}
}
