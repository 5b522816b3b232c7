// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"maps"
	"sync"
	"time"
)

// Limits are the limits of a Throttle.
type Limits struct {
	// Burst is how many actions in a row are allowed without a pause.
	Burst int
	// Base and Limit are the first and the longest pause after that. Pauses double.
	Base, Limit time.Duration
	// Quiet is how long there must be no action, beyond the pause, until the actions so
	// far are dropped.
	Quiet time.Duration
}

// Throttle counts actions, each for a key of an owner, and decides when the next one is allowed.
// With each key it keeps a value. It is safe for concurrent use.
type Throttle[O, K comparable, V any] struct {
	limits Limits

	mu      sync.Mutex
	byOwner map[O]map[K]Actions[V]
	swept   time.Time
}

// Actions are the actions of one key, as far as they are not dropped.
type Actions[V any] struct {
	Count int
	// Until is when the next action is allowed.
	Until time.Time
	Value V
}

// NewThrottle returns a Throttle with these limits.
func NewThrottle[O, K comparable, V any](limits Limits) *Throttle[O, K, V] {
	return &Throttle[O, K, V]{limits: limits, byOwner: map[O]map[K]Actions[V]{}}
}

// Count counts one more action, keeps the value, and returns the actions of the key.
func (t *Throttle[O, K, V]) Count(owner O, key K, value V, now time.Time) Actions[V] {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	known := t.byOwner[owner][key]
	if t.isOver(known, now) {
		known = Actions[V]{}
	}
	known.Count, known.Until, known.Value = known.Count+1, now, value
	if known.Count >= t.limits.Burst {
		known.Until = now.Add(Delay(known.Count-t.limits.Burst, t.limits.Base, t.limits.Limit))
	}
	if t.byOwner[owner] == nil {
		t.byOwner[owner] = map[K]Actions[V]{}
	}
	t.byOwner[owner][key] = known
	return known
}

// Get returns the actions of the key; none if they were dropped.
func (t *Throttle[O, K, V]) Get(owner O, key K, now time.Time) Actions[V] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known := t.byOwner[owner][key]; !t.isOver(known, now) {
		return known
	}
	return Actions[V]{}
}

// Paused returns the actions of the owner's keys that are not allowed the next one yet.
func (t *Throttle[O, K, V]) Paused(owner O, now time.Time) map[K]Actions[V] {
	t.mu.Lock()
	defer t.mu.Unlock()
	paused := maps.Clone(t.byOwner[owner])
	maps.DeleteFunc(paused, func(_ K, known Actions[V]) bool { return !now.Before(known.Until) })
	return paused
}

// UpdateValue replaces the value that is kept with the key, if there are actions of it.
func (t *Throttle[O, K, V]) UpdateValue(owner O, key K, replace func(V) V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if known, counted := t.byOwner[owner][key]; counted {
		known.Value = replace(known.Value)
		t.byOwner[owner][key] = known
	}
}

// Reset drops the actions of the key.
func (t *Throttle[O, K, V]) Reset(owner O, key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byOwner[owner], key)
}

// ForgetOwner drops everything about the owner.
func (t *Throttle[O, K, V]) ForgetOwner(owner O) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byOwner, owner)
}

func (t *Throttle[O, K, V]) isOver(known Actions[V], now time.Time) bool {
	return now.Sub(known.Until) > t.limits.Quiet
}

// sweep drops expired entries, now and then.
func (t *Throttle[O, K, V]) sweep(now time.Time) {
	if now.Sub(t.swept) < t.limits.Quiet {
		return
	}
	t.swept = now
	for owner, keys := range t.byOwner {
		maps.DeleteFunc(keys, func(_ K, known Actions[V]) bool { return t.isOver(known, now) })
		if len(keys) == 0 {
			delete(t.byOwner, owner)
		}
	}
}
