// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// fakeServer is a server with watches that start and send when the test says so.
type fakeServer struct {
	*testing.T
	*Manager
	lock     sync.Mutex
	pending  []string
	versions map[types.NamespacedName]string
	counter  int
}

// newFakeServer is to be used in a bubble.
func newFakeServer(t *testing.T, options Options) *fakeServer {
	w := &fakeServer{T: t, versions: map[types.NamespacedName]string{}, counter: 10}
	options.Notify = func(owner types.NamespacedName) {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.pending = append(w.pending, owner.Name)
	}
	w.Manager = newManager(options, func(ctx context.Context, _ *informer) { <-ctx.Done() })
	t.Cleanup(w.Close)
	return w
}

// watches are the scopes that are watched.
func (w *fakeServer) watches() string {
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

func (w *fakeServer) informer(text string) *informer {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.Manager.informers[read(text)]
	if f == nil {
		w.Fatalf("%s is not watched", text)
	}
	return f
}

// list lets a watch show what is there.
func (w *fakeServer) list(text string) {
	w.Helper()
	f := w.informer(text)
	f.Listing()
	f.Replace(w.shown(f), strconv.Itoa(w.counter), true)
}

func (w *fakeServer) shown(f *informer) map[types.NamespacedName]string {
	shown := map[types.NamespacedName]string{}
	for o, version := range w.versions {
		if f.scope.includes(scope{secrets, o.Namespace, o.Name}) {
			shown[o] = version
		}
	}
	return shown
}

// change writes an object and lets the watch of a scope send it, if there is one named.
func (w *fakeServer) change(text, via string) string {
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

func (w *fakeServer) remove(text, via string) {
	w.Helper()
	w.counter++
	at := read(text)
	o := at.object()
	delete(w.versions, o)
	w.informer(via).set(o, "", strconv.Itoa(w.counter))
}

func (w *fakeServer) set(owner string, references ...Reference) {
	w.Set(types.NamespacedName{Name: owner}, references)
}

func reference(text, observed string) Reference {
	at := read(text)
	return Reference{Type: secrets, Namespace: at.namespace, Name: at.name, ResourceVersion: observed}
}

// drain returns the owners that were notified since the last call.
func (w *fakeServer) drain() []string {
	synctest.Wait()
	w.lock.Lock()
	defer w.lock.Unlock()
	names := w.pending
	w.pending = nil
	return names
}

// notified returns the owners, sorted, that were notified since the last call, after pending
// notifications were sent.
func (w *fakeServer) notified() string {
	time.Sleep(collect)
	names := w.drain()
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (w *fakeServer) expect(notified string) {
	w.Helper()
	if got := w.notified(); got != notified {
		w.Errorf("notified: %q, want %q", got, notified)
	}
}

func inBubble(t *testing.T, options Options, f func(w *fakeServer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newFakeServer(t, options)) })
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
