// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// world is a server whose watches begin and send when the test says so.
type world struct {
	*testing.T
	*Manager
	lock     sync.Mutex
	woken    []string
	versions map[types.NamespacedName]string
	counter  int
}

// newWorld is to be used in a bubble.
func newWorld(t *testing.T, options Options) *world {
	w := &world{T: t, versions: map[types.NamespacedName]string{}, counter: 10}
	options.Notify = func(who types.NamespacedName) {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.woken = append(w.woken, who.Name)
	}
	w.Manager = newManager(options, func(ctx context.Context, _ *informer) { <-ctx.Done() })
	t.Cleanup(w.Close)
	return w
}

// watches are the scopes that are watched.
func (w *world) watches() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var texts []string
	for at, f := range w.Manager.informers {
		if f.idle == nil {
			texts = append(texts, written(at))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func (w *world) informer(text string) *informer {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.Manager.informers[read(text)]
	if f == nil {
		w.Fatalf("%s is not watched", text)
	}
	return f
}

// begin lets a watch show what is there.
func (w *world) begin(text string) {
	w.Helper()
	f := w.informer(text)
	f.Listing()
	f.Replace(w.shown(f), strconv.Itoa(w.counter), true)
}

func (w *world) shown(f *informer) map[types.NamespacedName]string {
	shown := map[types.NamespacedName]string{}
	for o, version := range w.versions {
		if f.scope.includes(scope{secrets, o.Namespace, o.Name}) {
			shown[o] = version
		}
	}
	return shown
}

// change writes an object and lets the watch of a scope send it, if there is one named.
func (w *world) change(text, via string) string {
	w.Helper()
	w.counter++
	at, version := read(text), strconv.Itoa(w.counter)
	o := at.object()
	w.versions[o] = version
	if via != "" {
		w.informer(via).set(o, version, version)
	}
	return version
}

func (w *world) remove(text, via string) {
	w.Helper()
	w.counter++
	at := read(text)
	o := at.object()
	delete(w.versions, o)
	w.informer(via).set(o, "", strconv.Itoa(w.counter))
}

func (w *world) set(who string, points ...Reference) {
	w.Set(types.NamespacedName{Name: who}, points)
}

func point(text, seen string) Reference {
	at := read(text)
	return Reference{Type: secrets, Namespace: at.namespace, Name: at.name, Seen: seen}
}

// take returns who was woken since the last time.
func (w *world) take() []string {
	synctest.Wait()
	w.lock.Lock()
	defer w.lock.Unlock()
	woken := w.woken
	w.woken = nil
	return woken
}

// wakes is take after those are woken who are about to be, in order.
func (w *world) wakes() string {
	time.Sleep(collect)
	woken := w.take()
	slices.Sort(woken)
	return strings.Join(woken, " ")
}

func (w *world) expect(wakes string) {
	w.Helper()
	if got := w.wakes(); got != wakes {
		w.Errorf("notified: %q, want %q", got, wakes)
	}
}

func inBubble(t *testing.T, options Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newWorld(t, options)) })
}

// wire is the connection of a Manager to the server.
type wire struct {
	next http.RoundTripper
	// answer may answer a request in place of the server.
	answer func(*http.Request) *http.Response

	mu       sync.Mutex
	received bytes.Buffer
	watches  int
	bodies   []io.Closer
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.answer != nil {
		if response := w.answer(request); response != nil {
			return response, nil
		}
	}
	response, err := w.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if request.URL.Query().Get("watch") != "" {
		w.watches++
		w.bodies = append(w.bodies, response.Body)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(response.Body, w), response.Body}
	return response, nil
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.received.Write(p)
}

// cut ends all watches in the middle.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, body := range w.bodies {
		_ = body.Close()
	}
	w.bodies = nil
}

// status is an answer of a server that refuses.
func status(request *http.Request, code int, reason metav1.StatusReason) *http.Response {
	text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}
}
