// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/pkg/result"
)

// requeueAfter says when the object is requeued, beyond what the outcome says by itself: no
// outcome is final, errors have retry classes, and a handler that wants to go on again
// and again without getting anywhere is slowed down.
func (p *Session[T]) requeueAfter(out reconcile.Result) reconcile.Result {
	progress := p.err != nil || p.result != result.Requeue || p.patcher.Writes() > 0
	if progress {
		p.known.idle.Reset()
	}
	switch {
	case p.err != nil:
		return p.requeueAfterError(out, p.err)
	case !progress:
		out.RequeueAfter = max(out.RequeueAfter, p.known.idle.Idle())
	case out.RequeueAfter <= 0 && !p.rests():
		out.RequeueAfter = p.sessions.Options.early(p.sessions.Options.RequeueInterval)
	}
	p.known.attempts = attempts{}
	return out
}

// rests reports whether the object is not reconciled again until it changes.
func (p *Session[T]) rests() bool {
	return p.Phase == PhaseSkip && p.Policy != v1alpha1.ManagementPolicySkip
}

// requeueAfterError gives an error that has a retry class its delay: by way of the result if
// it is not returned to the controller, else by way of the controller's rate limiter.
func (p *Session[T]) requeueAfterError(out reconcile.Result, err error) reconcile.Result {
	interval, generation := p.sessions.Options.early(p.sessions.Options.RequeueInterval), p.Object.GetGeneration()
	outcome := result.Compute(result.Empty, err, nil).Outcome
	delayOfClass := func(class result.Retry) time.Duration {
		return delayOf(class, p.known.attempts.countOf(class, generation), interval)
	}
	urgent := urgentError(err, outcome, delayOfClass)
	if urgent == nil {
		p.known.attempts = attempts{}
		return out
	}
	delay := delayOfError(urgent, delayOfClass)
	if urgent.After <= 0 {
		p.known.attempts.add(classOf(urgent), generation)
		delay = p.sessions.Options.early(delay)
	}
	if outcome == result.Failed {
		p.sessions.Options.RateLimiter.setNext(reconcile.Request{NamespacedName: p.key}, delay)
		return out
	}
	if out.RequeueAfter <= 0 || delay < out.RequeueAfter {
		out.RequeueAfter = delay
	}
	return out
}

// delayOf is pure: the delay of a class, before jitter. Attempts count from 0.
func delayOf(class result.Retry, attempt int, interval time.Duration) time.Duration {
	switch class {
	case result.RetryFast:
		return backoff.Delay(attempt, fastBase, min(fastLimit, interval))
	case result.RetryVerySlow:
		return interval
	default:
		return backoff.Delay(attempt, slowBase, min(slowLimit, interval))
	}
}

// attempts counts how often in a row an object was requeued in the same class and generation.
type attempts struct {
	class      result.Retry
	generation int64
	count      int
}

// countOf returns the number of attempts so far.
func (a attempts) countOf(class result.Retry, generation int64) int {
	if a.class == class && a.generation == generation {
		return a.count
	}
	return 0
}

// add counts one more.
func (a *attempts) add(class result.Retry, generation int64) {
	*a = attempts{class: class, generation: generation, count: a.countOf(class, generation) + 1}
}

// RateLimiter is the rate limiter of a controller's queue that knows the retry
// class of the error that a Reconciler has just returned: a queue asks its rate limiter
// with the name of the object only. Errors without a class are held back for 200 ms,
// doubling up to two minutes. It is safe for concurrent use.
type RateLimiter struct {
	*backoff.RateLimiter

	mu sync.Mutex
	// next is how long requests are held back the next time.
	next map[reconcile.Request]time.Duration
}

var _ workqueue.TypedRateLimiter[reconcile.Request] = (*RateLimiter)(nil)

// NewRateLimiter returns a RateLimiter.
func NewRateLimiter() *RateLimiter {
	return &RateLimiter{RateLimiter: backoff.NewRateLimiter(), next: map[reconcile.Request]time.Duration{}}
}

// setNext sets how long the request is held back the next time.
func (l *RateLimiter) setNext(request reconcile.Request, delay time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next[request] = delay
}

// When returns how long the request is held back.
func (l *RateLimiter) When(request reconcile.Request) time.Duration {
	l.mu.Lock()
	delay, set := l.next[request]
	delete(l.next, request)
	l.mu.Unlock()
	if set {
		l.RateLimiter.Forget(request)
		return delay
	}
	return l.RateLimiter.When(request)
}

// Forget drops what is kept about the request.
func (l *RateLimiter) Forget(request reconcile.Request) {
	l.mu.Lock()
	delete(l.next, request)
	l.mu.Unlock()
	l.RateLimiter.Forget(request)
}
