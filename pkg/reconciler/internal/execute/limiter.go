// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"sync"
	"time"
)

const (
	// maxSpeedup is how many times the initial limit the limit may become.
	maxSpeedup = 4
	// A step that takes less than fast shows that the server can do more. A step that takes slow or
	// more shows that the server has too much to do: after "too many requests" a client waits for
	// at least a second.
	fast, slow = 100 * time.Millisecond, time.Second
)

// limiter limits how many steps run at once on a target, for all owners together. The
// limit adapts to the server: it grows slowly while steps are fast, and is halved when
// a step is slow. It does not fall below the initial limit: a step may be slow for
// reasons of its own, such as a webhook.
type limiter struct {
	initial int
	// slots holds a value for each step that may start. Waiting steps get them in order.
	slots chan struct{}

	mu    sync.Mutex
	limit float64
	// issued counts the slots that are free or in use.
	issued int
}

func newLimiter(initial int) *limiter {
	l := &limiter{initial: initial, slots: make(chan struct{}, maxSpeedup*initial), limit: float64(initial)}
	l.issueSlots()
	return l
}

// acquire waits for a slot. It returns the error of the context if that ends first.
func (l *limiter) acquire(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-l.slots:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// release returns the slot of a step and adapts the limit to how long the step took.
func (l *limiter) release(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case took >= slow:
		l.limit = max(l.limit/2, float64(l.initial))
	case took < fast:
		l.limit = min(l.limit+1/l.limit, float64(maxSpeedup*l.initial))
	}
	l.issued--
	l.issueSlots()
}

// issueSlots adds free slots up to the limit, or removes slots beyond it.
func (l *limiter) issueSlots() {
	for ; l.issued < int(l.limit); l.issued++ {
		l.slots <- struct{}{} // never blocks: the channel has room for the highest limit
	}
	for ; l.issued > int(l.limit); l.issued-- {
		select {
		case <-l.slots:
		default:
			return // they are in use
		}
	}
}
