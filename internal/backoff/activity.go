// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"sync"
	"time"
)

const (
	activityBase  = 50 * time.Millisecond
	activityLimit = 10 * time.Second
)

// Activity gives every key delays that grow while nothing happens. It is the net
// below event-driven waiting: as long as there is progress the net is tight, and a
// key that waits for hours costs next to nothing. It is safe for concurrent use.
type Activity[K comparable] struct {
	mu          sync.Mutex
	attempts    map[K]int
	base, limit time.Duration
}

// NewActivity returns an Activity whose delays double from base to limit.
func NewActivity[K comparable](base, limit time.Duration) *Activity[K] {
	return &Activity[K]{attempts: map[K]int{}, base: base, limit: limit}
}

// DefaultActivity returns an Activity whose delays double from 50 ms to 10 s.
func DefaultActivity[K comparable]() *Activity[K] {
	return NewActivity[K](activityBase, activityLimit)
}

// Next returns the next delay of the key.
func (a *Activity[K]) Next(key K) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	attempt := a.attempts[key]
	a.attempts[key]++
	return Delay(attempt, a.base, a.limit)
}

// Reset says that the key made progress: its next delay is the shortest again.
// Whoever knows that a key will not come again calls it too, so that nothing is
// kept about it.
func (a *Activity[K]) Reset(key K) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.attempts, key)
}

// Forget drops what is kept about the key.
func (a *Activity[K]) Forget(key K) { a.Reset(key) }
