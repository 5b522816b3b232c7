// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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

// Streak counts attempts in a row that came to nothing. The zero value has none. It is
// safe for concurrent use.
type Streak struct{ attempts atomic.Int32 }

// Next counts one more attempt and returns the delay before the next one, which doubles
// from base to limit.
func (s *Streak) Next(base, limit time.Duration) time.Duration {
	return Delay(int(s.attempts.Add(1)-1), base, limit)
}

// Idle counts one more attempt and returns the delay of something that waits for an event,
// in case the event does not come: 50 ms, doubling up to 10 s.
func (s *Streak) Idle() time.Duration { return s.Next(idleBase, idleLimit) }

const (
	idleBase  = 50 * time.Millisecond
	idleLimit = 10 * time.Second
)

// Reset ends the streak: the next delay is the shortest again.
func (s *Streak) Reset() { s.attempts.Store(0) }

const (
	// Limit: the delay after the first error of a component or object; it doubles with every further error.
	errorBase = 200 * time.Millisecond
	// Limit: the longest such delay.
	errorLimit  = 2 * time.Minute
	errorJitter = 0.1
	// errorCeiling leaves room for the jitter below the limit.
	errorCeiling = errorLimit * 10 / 11
	// Limit: the errors that count for the next delay after progress.
	errorsWithProgress = 4
)

// RateLimiter decides how long a controller's queue holds back a request that failed: 200 ms,
// doubling, and up to 10 % on top at random, but never more than 2 minutes. So the delay after a
// failure of hours is at most two minutes. It is safe for concurrent use.
type RateLimiter struct {
	mu       sync.Mutex
	failures map[reconcile.Request]int
	random   func() float64
}

// NewRateLimiter returns a RateLimiter. It fits where controller-runtime and
// client-go want a typed rate limiter.
func NewRateLimiter() *RateLimiter {
	return &RateLimiter{failures: map[reconcile.Request]int{}, random: Random}
}

// When counts a failure of the request and returns the delay.
func (l *RateLimiter) When(request reconcile.Request) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	attempt := l.failures[request]
	l.failures[request]++
	return Jitter(Delay(attempt, errorBase, errorCeiling), errorJitter, l.random())
}

// Progress bounds the delay after the next failure of the request: it made progress, so the next
// failure is another one. The delay is not the shortest one, because a request may do the same
// again and again.
func (l *RateLimiter) Progress(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failures[request] > errorsWithProgress {
		l.failures[request] = errorsWithProgress
	}
}

// Forget drops the failures of the request.
func (l *RateLimiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, request)
}

// NumRequeues returns how often the request failed since it was forgotten.
func (l *RateLimiter) NumRequeues(request reconcile.Request) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failures[request]
}

// Retried returns the error in a form that the controller tries again. Anywhere in it a
// reconcile.TerminalError may hide, with which the controller would drop the object for
// good. All else is found in it by errors.Is and errors.As as before.
func Retried(err error) error {
	if !errors.Is(err, reconcile.TerminalError(nil)) {
		return err
	}
	return retried{err}
}

// retried has no Unwrap, because errors.As would find the hidden error.
type retried struct{ err error }

func (r retried) Error() string { return r.err.Error() }

// Is finds everything but a terminal error.
func (r retried) Is(target error) bool {
	return !errors.Is(target, reconcile.TerminalError(nil)) && errors.Is(r.err, target)
}

// As finds everything.
func (r retried) As(target any) bool { return errors.As(r.err, target) }
