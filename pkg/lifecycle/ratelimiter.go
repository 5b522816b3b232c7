// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/backoff"
)

// RateLimiter is the rate limiter of a controller's queue that knows the retry
// class of the error that a Loop has just returned: a queue asks its rate limiter
// with the name of the object only. Errors without a class are held back for 200 ms,
// doubling up to two minutes. It is safe for concurrent use.
type RateLimiter struct {
	ordinary *backoff.RateLimiter

	mu   sync.Mutex
	told map[reconcile.Request]time.Duration
}

var _ workqueue.TypedRateLimiter[reconcile.Request] = (*RateLimiter)(nil)

// NewRateLimiter returns a RateLimiter. Give it to the controller and, as option
// RateLimiter, to the Loop. SetupWithManager does both.
func NewRateLimiter() *RateLimiter {
	return &RateLimiter{ordinary: backoff.NewRateLimiter(), told: map[reconcile.Request]time.Duration{}}
}

// tell says how long the request is held back the next time.
func (l *RateLimiter) tell(request reconcile.Request, delay time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[request] = delay
}

// When returns how long the request is held back.
func (l *RateLimiter) When(request reconcile.Request) time.Duration {
	l.mu.Lock()
	delay, told := l.told[request]
	delete(l.told, request)
	l.mu.Unlock()
	if told {
		l.ordinary.Forget(request)
		return delay
	}
	return l.ordinary.When(request)
}

// Forget drops what is kept about the request.
func (l *RateLimiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	delete(l.told, request)
	l.mu.Unlock()
	l.ordinary.Forget(request)
}

// NumRequeues returns how often the request failed in a row without a class.
func (l *RateLimiter) NumRequeues(request reconcile.Request) int {
	return l.ordinary.NumRequeues(request)
}
