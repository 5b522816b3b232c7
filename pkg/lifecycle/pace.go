// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
)

// pace says when the object comes again, beyond what the outcome says by itself: no
// outcome is final, errors have retry classes, and a handler that wants to go on again
// and again without getting anywhere is slowed down.
func (p *Session[T]) pace(out reconcile.Result) reconcile.Result {
	progress := p.err != nil || p.result != result.Requeue || p.patcher.Writes() > 0
	if progress {
		p.known.idle.Reset()
	}
	switch {
	case p.err != nil:
		return p.paceError(out, p.err)
	case !progress:
		out.RequeueAfter = max(out.RequeueAfter, p.known.idle.Idle())
	case out.RequeueAfter <= 0 && !p.rests():
		out.RequeueAfter = p.sessions.options.early(p.sessions.options.RequeueInterval)
	}
	p.known.attempts = attempts{}
	return out
}

// rests reports whether the object is not reconciled again until it changes.
func (p *Session[T]) rests() bool { return p.Phase == PhaseSkip && p.Policy != Skip }

// paceError gives an error that has a retry class its delay: by way of the result if
// it is not returned to the controller, else by way of the controller's rate limiter.
func (p *Session[T]) paceError(out reconcile.Result, err error) reconcile.Result {
	interval, generation := p.sessions.options.early(p.sessions.options.RequeueInterval), p.Object.GetGeneration()
	outcome := result.Compute(result.Empty, err, nil).Outcome
	delayOfClass := func(class Retry) time.Duration {
		return delayOf(class, p.known.attempts.of(class, generation), interval)
	}
	urgent := urgentError(err, outcome, delayOfClass)
	if urgent == nil {
		p.known.attempts = attempts{}
		return out
	}
	delay := urgent.delay(delayOfClass)
	if urgent.After <= 0 {
		p.known.attempts.add(urgent.class(), generation)
		delay = p.sessions.options.early(delay)
	}
	if outcome == result.Failed {
		p.sessions.options.RateLimiter.tell(reconcile.Request{NamespacedName: p.key}, delay)
		return out
	}
	if out.RequeueAfter <= 0 || delay < out.RequeueAfter {
		out.RequeueAfter = delay
	}
	return out
}
