// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	errorBase   = 200 * time.Millisecond
	errorLimit  = 2 * time.Minute
	errorJitter = 0.1
	// errorCeiling leaves room for the jitter below the limit.
	errorCeiling = errorLimit * 10 / 11
)

// RateLimiter says how long a controller's queue holds back a request that
// failed: 200 ms, doubling, and up to 10 % on top at random, but never more than
// 2 minutes. So whatever lasted for hours is over two minutes after its end. It is
// safe for concurrent use.
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
