// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/backoff"
)

// RetryPolicy decides after an error whether the reconciler is called again without
// anything having changed, and after how long. Attempt counts the retries that were
// made, from 0. It restarts when the content of the object changes, when its
// deletion starts, and after a call without an error. Some jitter, up to a tenth, is
// added to the delay. A reconcile.TerminalError without a RequeueAfter is not retried,
// and the policy is not asked.
//
// An object that is not retried is reconciled again when it changes by the measure of the option
// Changed, when it is resynced and after a restart. An event with reason GaveUp reports that. An
// object that is gone is reconciled again when it is resynced, and once more if another object of
// its name appears before that.
type RetryPolicy func(err error, attempt int) (retry bool, after time.Duration)

// The delays of the default policy.
const (
	// Limit: the delay after the first error under changes.DefaultRetryPolicy; it doubles with every further
	// error.
	defaultRetryInitial = 200 * time.Millisecond
	// Limit: the longest delay under changes.DefaultRetryPolicy.
	defaultRetryMax = 2 * time.Minute

	// writeRetryInitial is how long our own writes wait at first after a conflict or error.
	writeRetryInitial = 50 * time.Millisecond
)

// DefaultRetryPolicy retries for ever, with delays that double from 200 ms to 2 minutes.
var DefaultRetryPolicy = ExponentialBackoffRetryPolicy(defaultRetryInitial, defaultRetryMax)

// ExponentialBackoffRetryPolicy retries for ever, with delays that double from
// initial to limit.
func ExponentialBackoffRetryPolicy(initial, limit time.Duration) RetryPolicy {
	return func(_ error, attempt int) (bool, time.Duration) { return true, backoff.Delay(attempt, initial, limit) }
}

// FixedRetryPolicy retries for ever, always after the same delay.
func FixedRetryPolicy(after time.Duration) RetryPolicy {
	return func(error, int) (bool, time.Duration) { return true, after }
}

// NoRetryPolicy does not retry. With an opinionated reconciler this means that after a failed
// deletion an object stays until it is resynced.
func NoRetryPolicy() RetryPolicy {
	return func(error, int) (bool, time.Duration) { return false, 0 }
}

// limiter passes a delay to the queue, which asks for it after every error. A rate
// limiter only gets the object, and not the error.
type limiter struct {
	mu     sync.Mutex
	delays map[client.ObjectKey]time.Duration
}

var _ workqueue.TypedRateLimiter[reconcile.Request] = (*limiter)(nil)

func newLimiter() *limiter { return &limiter{delays: map[client.ObjectKey]time.Duration{}} }

func (l *limiter) set(key client.ObjectKey, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delays[key] = delay
}

// When returns the delay that was set, once; else the delay for errors which we did not see, such
// as a timeout of controller-runtime.
func (l *limiter) When(request reconcile.Request) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	delay, ok := l.delays[request.NamespacedName]
	delete(l.delays, request.NamespacedName)
	if !ok {
		return time.Second
	}
	return max(delay, time.Millisecond)
}

func (l *limiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.delays, request.NamespacedName)
}

// NumRequeues implements workqueue.TypedRateLimiter. Attempts are counted elsewhere.
func (l *limiter) NumRequeues(reconcile.Request) int { return 0 }
