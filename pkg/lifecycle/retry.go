// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
)

// delayOf is pure: the delay of a class, before jitter. Attempts count from 0.
func delayOf(class Retry, attempt int, interval time.Duration) time.Duration {
	switch class {
	case RetryFast:
		return backoff.Delay(attempt, fastBase, min(fastLimit, interval))
	case RetryVerySlow:
		return interval
	default:
		return backoff.Delay(attempt, slowBase, min(slowLimit, interval))
	}
}

// attempts counts, by object, how often in a row it came again in the same class
// and generation.
type attempts struct {
	mu     sync.Mutex
	counts map[client.ObjectKey]attempt
}

type attempt struct {
	class      Retry
	generation int64
	count      int
}

// of returns the number of attempts so far.
func (a *attempts) of(key client.ObjectKey, class Retry, generation int64) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.counts[key]; last.class == class && last.generation == generation {
		return last.count
	}
	return 0
}

// add counts one more.
func (a *attempts) add(key client.ObjectKey, class Retry, generation int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.counts[key]
	if last.class != class || last.generation != generation {
		last = attempt{class: class, generation: generation}
	}
	last.count++
	if a.counts == nil {
		a.counts = map[client.ObjectKey]attempt{}
	}
	a.counts[key] = last
}

// forget starts the object anew.
func (a *attempts) forget(key client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.counts, key)
}
