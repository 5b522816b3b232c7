// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

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

// attempts counts how often in a row an object came again in the same class and generation.
type attempts struct {
	class      Retry
	generation int64
	count      int
}

// of returns the number of attempts so far.
func (a attempts) of(class Retry, generation int64) int {
	if a.class == class && a.generation == generation {
		return a.count
	}
	return 0
}

// add counts one more.
func (a *attempts) add(class Retry, generation int64) {
	*a = attempts{class: class, generation: generation, count: a.of(class, generation) + 1}
}
