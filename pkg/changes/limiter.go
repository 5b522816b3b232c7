// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// limiter hands a delay over to the queue, which asks for it after every error. A rate
// limiter only gets to know the object, and not the error.
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

// When returns the delay that was set, once; else that of errors which we did not see,
// such as a timeout of controller-runtime.
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

// Forget implements workqueue.TypedRateLimiter.
func (l *limiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.delays, request.NamespacedName)
}

// NumRequeues implements workqueue.TypedRateLimiter. Attempts are counted elsewhere.
func (l *limiter) NumRequeues(reconcile.Request) int { return 0 }
