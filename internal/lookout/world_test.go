// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// world is a server whose watches begin and send when the test says so.
type world struct {
	*testing.T
	*Lookout
	lock     sync.Mutex
	woken    []string
	versions map[object]string
	counter  int
}

// newWorld is to be used in a bubble.
func newWorld(t *testing.T, options Options) *world {
	w := &world{T: t, versions: map[object]string{}, counter: 10}
	options.Wake = func(who types.NamespacedName) {
		w.lock.Lock()
		defer w.lock.Unlock()
		w.woken = append(w.woken, who.Name)
	}
	w.Lookout = newLookout(options, func(ctx context.Context, at place, f *feed) { <-ctx.Done() })
	t.Cleanup(w.Close)
	return w
}

// watches are the places that are watched.
func (w *world) watches() string {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var texts []string
	for at, f := range w.Lookout.feeds {
		if f.idle == nil {
			texts = append(texts, written(at))
		}
	}
	slices.Sort(texts)
	return strings.Join(texts, " ")
}

func (w *world) feed(text string) *feed {
	w.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.Lookout.feeds[read(text)]
	if f == nil {
		w.Fatalf("%s is not watched", text)
	}
	return f
}

// begin lets a watch show what is there.
func (w *world) begin(text string) {
	w.Helper()
	f := w.feed(text)
	f.asks()
	f.replace(w.shown(f), strconv.Itoa(w.counter))
}

func (w *world) shown(f *feed) map[object]string {
	shown := map[object]string{}
	for o, version := range w.versions {
		if f.shows(place{secrets, o.namespace, o.name}) {
			shown[o] = version
		}
	}
	return shown
}

// change writes an object and lets the watch of a place send it, if there is one named.
func (w *world) change(text, via string) string {
	w.Helper()
	w.counter++
	at, version := read(text), strconv.Itoa(w.counter)
	o := object{at.namespace, at.name}
	w.versions[o] = version
	if via != "" {
		w.feed(via).set(o, version, version)
	}
	return version
}

func (w *world) remove(text, via string) {
	w.Helper()
	w.counter++
	at := read(text)
	o := object{at.namespace, at.name}
	delete(w.versions, o)
	w.feed(via).set(o, "", strconv.Itoa(w.counter))
}

func (w *world) set(who string, points ...Point) {
	w.Set(types.NamespacedName{Name: who}, points)
}

func point(text, seen string) Point {
	at := read(text)
	return Point{Type: secrets, Namespace: at.namespace, Name: at.name, Seen: seen}
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
	time.Sleep(settle)
	woken := w.take()
	slices.Sort(woken)
	return strings.Join(woken, " ")
}

func (w *world) expect(wakes string) {
	w.Helper()
	if got := w.wakes(); got != wakes {
		w.Errorf("woken: %q, want %q", got, wakes)
	}
}

func inBubble(t *testing.T, options Options, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(newWorld(t, options)) })
}
