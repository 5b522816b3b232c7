// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"math/rand/v2"
	"time"
)

// Delay doubles base with every attempt, the first being attempt 0, up to limit.
func Delay(attempt int, base, limit time.Duration) time.Duration {
	delay := min(base, limit)
	for range attempt {
		if delay >= limit-delay { // doubling would reach the limit, or overflow
			return limit
		}
		delay *= 2
	}
	return delay
}

// Jitter adds up to the given fraction of the delay: random is a number in
// [0, 1), so that many objects that failed together do not come back together.
func Jitter(delay time.Duration, fraction, random float64) time.Duration {
	return delay + time.Duration(float64(delay)*fraction*random)
}

// Random returns a number in [0, 1). It needs no seed and is safe for concurrent use.
func Random() float64 { return rand.Float64() }
