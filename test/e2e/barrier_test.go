// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/wire"
)

// barrier stops an operator before one of its requests until it may continue, as
// a pause of the process or of the network does.
type barrier struct {
	// at is the request, counted from 1, before which the operator stops; 0 means never.
	at int

	resume chan struct{}

	mu      sync.Mutex
	armed   bool
	stopped string // the request: method and path; empty before
	since   time.Time
	waiting map[string]bool // the objects that requests that wait write, by name
	count   int
	flying  int
	last    time.Time
}

func newBarrier(at int) *barrier {
	return &barrier{at: at, resume: make(chan struct{}), waiting: map[string]bool{}}
}

// wrap puts the barrier between the operator and the server. While it is down,
// nothing at all gets through: the operator hears of no change either.
func (b *barrier) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if isBackground(r) {
			return next.RoundTrip(r)
		}
		if b.step(r) {
			select {
			case <-b.resume:
			case <-r.Context().Done():
			}
		}
		defer b.done()
		return next.RoundTrip(r)
	})
}

// step counts a request and reports whether it has to wait.
func (b *barrier) step(r *http.Request) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying++
	b.last = time.Now()
	if !b.armed {
		return false
	}
	b.count++
	if b.count == b.at {
		b.stopped, b.since = r.Method+" "+r.URL.Path, time.Now()
	}
	if b.stopped == "" {
		return false
	}
	select {
	case <-b.resume:
		return false
	default:
	}
	// Requests that are sent at the same time wait, too: the process stands still.
	b.waiting[writtenName(bodyOf(r))] = true
	return true
}

func (b *barrier) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.flying--
	b.last = time.Now()
}

func (b *barrier) arm() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.armed = true
}

// isDown reports whether the operator has stopped.
func (b *barrier) isDown() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped != ""
}

// stoppedFor is how long the operator has stood still.
func (b *barrier) stoppedFor() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stopped == "" {
		return 0
	}
	return time.Since(b.since)
}

// await waits until the operator has gone on and is quiet.
func (b *barrier) await(t testing.TB) {
	t.Helper()
	eventually(t, "the first operator to be quiet", func(context.Context) error {
		if !b.isQuiet() {
			return errors.New("it is at work")
		}
		return nil
	})
}

// isQuiet reports whether the operator has sent nothing for a moment.
func (b *barrier) isQuiet() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flying == 0 && time.Since(b.last) > 700*time.Millisecond
}

// isUnderWay reports whether the write of the object was on its way when the
// operator stopped: it cannot be cancelled.
func (b *barrier) isUnderWay(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.waiting[name]
}

func (b *barrier) requests() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.count
}
