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
func (p *pass[T]) pace(out reconcile.Result, res result.Result, err error) reconcile.Result {
	progress := err != nil || res != result.Requeue || p.patcher.Writes() > 0
	if progress {
		p.activity.Reset(p.key)
	}
	switch {
	case err != nil:
		return p.paceError(out, err)
	case !progress:
		out.RequeueAfter = max(out.RequeueAfter, p.activity.Next(p.key))
	case out.RequeueAfter <= 0 && !p.rests():
		out.RequeueAfter = p.interval()
	}
	p.attempts.forget(p.key)
	return out
}

// rests tells whether nobody waits for the object until it is changed.
func (p *pass[T]) rests() bool { return p.stage == StageSkip && p.policy != Skip }

// interval is when the object comes again at the latest.
func (p *pass[T]) interval() time.Duration {
	if interval := p.builder().BuildRuntimeResult(result.Success, nil).RequeueAfter; interval > 0 {
		return interval
	}
	return p.options.early(p.options.RequeueInterval)
}

// paceError gives an error that has a retry class its delay: by way of the result if
// it is not returned to the controller, else by way of the controller's rate limiter.
func (p *pass[T]) paceError(out reconcile.Result, err error) reconcile.Result {
	interval, generation := p.interval(), p.obj.GetGeneration()
	outcome := result.Compute(result.Empty, err, nil).Outcome
	delayOfClass := func(class Retry) time.Duration {
		return delayOf(class, p.attempts.of(p.key, class, generation), interval)
	}
	urgent := urgentError(err, outcome, delayOfClass)
	if urgent == nil {
		p.attempts.forget(p.key)
		return out
	}
	delay := urgent.delay(delayOfClass)
	if urgent.After <= 0 {
		p.attempts.add(p.key, urgent.class(), generation)
		delay = p.options.early(delay)
	}
	if outcome == result.Failed {
		p.options.RateLimiter.tell(reconcile.Request{NamespacedName: p.key}, delay)
		return out
	}
	if out.RequeueAfter <= 0 || delay < out.RequeueAfter {
		out.RequeueAfter = delay
	}
	return out
}
