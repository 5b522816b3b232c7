// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"syscall"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/wire"
)

// faultyWatches puts a fault between the watches of one operator and the server.
// Without a fault it does nothing.
type faultyWatches struct {
	fault *watchFault
	// before is the version of the server before the scenario.
	before string

	// effect is closed when the fault has an effect, done when it has ended.
	effect, done chan struct{}

	mu      sync.Mutex
	started time.Time
	ended   time.Time
	version string // at which watches start in the past
	streams map[*watchStream]bool
	// relist are the paths of watches that cannot continue where they were, down those of
	// watches that were broken and have not started again.
	relist, down map[string]bool
	// affected is set if an event or a request did not get through as it was.
	affected bool
	// up is set when the operator has started to work.
	up     bool
	flying int
	last   time.Time
}

func newFaultyWatches(fault *watchFault, before string) *faultyWatches {
	return &faultyWatches{
		fault: fault, before: before, effect: make(chan struct{}), done: make(chan struct{}), last: time.Now(),
		streams: map[*watchStream]bool{}, relist: map[string]bool{}, down: map[string]bool{},
	}
}

// version is the newest version of everything on the server.
func (f *fixture) version(t testing.TB) string {
	t.Helper()
	return read(t, func(ctx context.Context) (string, error) {
		list := &BundleList{}
		err := f.List(ctx, list, client.InNamespace(f.namespace))
		return list.ResourceVersion, err
	})
}

// start starts the fault. It returns when the fault is as far as it should be
// before the scenario goes on.
func (w *faultyWatches) start(t testing.TB, version string) {
	t.Helper()
	if w.fault == nil {
		return
	}
	w.mu.Lock()
	w.started, w.version = time.Now(), version
	if w.fault.longPast {
		w.version = w.before
	}
	if w.fault.breaks() {
		for s := range w.streams {
			w.affect()
			w.cut(s)
		}
	}
	w.mu.Unlock()
	eventually(t, "the fault to work", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.up {
			return errors.New("the operator has not started to work")
		}
		if w.fault.isOld() && w.isDown(w.started) || time.Since(w.started) < w.fault.idle {
			return fmt.Errorf("watches that did not start in the past: %v", w.down)
		}
		return nil
	})
}

// awaitSync waits until the operator has listed the components.
func (o *operator) awaitSync(t testing.TB, watches *faultyWatches) {
	t.Helper()
	eventually(t, "the operator to list the components", func(ctx context.Context) error {
		watches.mu.Lock()
		defer watches.mu.Unlock()
		if !watches.up {
			return errors.New("the operator has not started to work")
		}
		return nil
	})
	if !o.cache.WaitForCacheSync(t.Context()) {
		t.Fatal("the operator does not list the components")
	}
}

// cut breaks a stream. It is called with the lock.
func (w *faultyWatches) cut(s *watchStream) {
	w.down[s.path] = true
	s.cut()
}

// isDown reports whether a watch has not started again although it had the time that it
// takes. It is called with the lock.
func (w *faultyWatches) isDown(since time.Time) bool {
	return len(w.down) > 0 && time.Since(since) < 2*time.Second
}

// endLater ends the fault when it has lasted as long as it should, counted from when
// it had an effect for the first time, or from the time that this may take.
func (w *faultyWatches) endLater(within time.Duration) {
	if w.fault == nil {
		return
	}
	go func() {
		select {
		case <-w.effect:
		case <-time.After(within):
		}
		time.AfterFunc(w.fault.lasts-w.fault.idle, w.end)
	}()
}

// endWithScenario reports whether the fault ends when the scenario has ended.
func (w *faultyWatches) endWithScenario() bool { return w.fault != nil && w.fault.ofComponents }

// affect notes that the fault has an effect. It is called with the lock.
func (w *faultyWatches) affect() {
	if !w.affected {
		w.affected = true
		close(w.effect)
	}
}

// end ends the fault.
func (w *faultyWatches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended.IsZero() {
		return
	}
	w.ended = time.Now()
	close(w.done)
	for s := range w.streams {
		if s.lossy {
			w.cut(s)
		}
	}
}

// awaitEnd waits for the end of the fault, and until the operator has done what the
// truth makes it do.
func (w *faultyWatches) awaitEnd(t testing.TB) {
	t.Helper()
	if w.fault == nil {
		return
	}
	<-w.done
	eventually(t, "the operator to be quiet", func(context.Context) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.isDown(w.ended) || w.flying > 0 || time.Since(w.last) < 400*time.Millisecond {
			return errors.New("it is at work")
		}
		return nil
	})
}

// isOn reports whether the fault goes on. It is called with the lock.
func (w *faultyWatches) isOn() bool { return !w.started.IsZero() && w.ended.IsZero() }

// around puts the faults before whatever else is between the operator and the server.
func (w *faultyWatches) around(wrap func(http.RoundTripper) http.RoundTripper) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		if wrap != nil {
			next = wrap(next)
		}
		return w.wrap(next)
	}
}

// check expects that the fault has changed anything.
func (w *faultyWatches) check(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil && !w.affected {
		t.Error("all events arrived as if there were no fault")
	}
}

func (w *faultyWatches) wrap(next http.RoundTripper) http.RoundTripper {
	if w.fault == nil {
		return next
	}
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if isWatch(r) && collectionOf(r) == "widgets" {
			w.mu.Lock()
			w.up = true
			w.mu.Unlock()
		}
		if !w.fault.concerns(r) {
			defer w.count(r)()
			return next.RoundTrip(r)
		}
		r = inJSON(r)
		if answer, err := w.intercept(r); answer != nil || err != nil {
			return answer, err
		}
		w.mu.Lock()
		on, started := w.isOn(), w.started
		w.mu.Unlock()
		switch {
		case on && w.fault.isOld() && isInitial(r):
			return w.fromThePast(next, r)
		case on && w.fault.isOld():
			return next.RoundTrip(w.inThePast(r, "Exact"))
		}
		response, err := next.RoundTrip(r)
		if err != nil || response.StatusCode != http.StatusOK || !isWatch(r) {
			return response, err
		}
		return w.stream(r, response, nil, started), nil
	})
}

// count notes a request that is none of a watch.
func (w *faultyWatches) count(r *http.Request) (done func()) {
	if isBackground(r) {
		return func() {}
	}
	note := func(more int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.flying += more
		w.last = time.Now()
	}
	note(1)
	return func() { note(-1) }
}

// intercept answers a request that does not get through.
func (w *faultyWatches) intercept(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	on, goesOn := w.isOn(), isWatch(r) && !isInitial(r)
	relist := goesOn && w.relist[r.URL.Path]
	if isInitial(r) || !isWatch(r) {
		delete(w.relist, r.URL.Path)
	}
	if relist || on && w.fault.breaks() {
		w.affect()
	}
	w.mu.Unlock()
	switch {
	case relist, on && w.fault.isOld() && goesOn:
		return answerWith(r, expired), nil
	case !on:
		return nil, nil
	case w.fault.refuse:
		return nil, syscall.ECONNREFUSED
	case w.fault.tooLarge && isWatch(r):
		return answerWith(r, tooLarge), nil
	case w.fault.silent:
		select {
		case <-w.done:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return nil, nil
}
