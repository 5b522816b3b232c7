// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Result tells how far a reconcile got. An error that comes with it overrules it.
type Result int

const (
	// Empty means nothing: there was nothing to do, or the error decides.
	Empty Result = iota
	// Requeue means that the reconcile made its contribution, but is not finished and wants to go
	// on soon.
	Requeue
	// Success means that everything is as it should be.
	Success
)

// String returns the name.
func (r Result) String() string {
	switch r {
	case Empty:
		return "Empty"
	case Requeue:
		return "Requeue"
	case Success:
		return "Success"
	default:
		return fmt.Sprintf("Result(%d)", int(r))
	}
}

// RequeueDelay is the delay of Requeue, unless the interval is shorter. The field Requeue of the
// controller's result is deprecated, and without an error its rate limiter would count a success as
// a failure.
const RequeueDelay = 200 * time.Millisecond

// fallbackDelay is the delay of a Waiting that has none, if the
// RuntimeResultBuilder does not know one either.
//
// Limit: the delay of an error that asks for a retry and names no delay.
const fallbackDelay = time.Minute

// RuntimeResultBuilder gives outcomes their meaning in time. Implement it if an interval does not
// fit.
type RuntimeResultBuilder interface {
	// BuildRuntimeResult converts the result and the error of a reconcile. The error is
	// nil, a *Waiting or a *Stalling: next to an ordinary error the controller ignores the
	// result, and an ignored one is Success. Beside a *Waiting or a *Stalling the result is
	// Empty, whatever the reconcile returned. The empty reconcile.Result means for a *Stalling
	// that only an event brings the object back; a *Waiting is requeued all the same. It may be called several times for one
	// reconcile, so it must have no side effects.
	BuildRuntimeResult(result Result, err error) reconcile.Result
}

// AlwaysRequeueResultBuilder is for reconcilers that look at their objects
// regularly: after success, after an ignored error, and while stalled, the object
// is reconciled again after RequeueAfter; a Waiting brings its own delay.
type AlwaysRequeueResultBuilder struct {
	// RequeueAfter is the interval.
	RequeueAfter time.Duration
}

// BuildRuntimeResult implements RuntimeResultBuilder. An ordinary error gives the
// empty result: the controller's rate limiter decides about it.
func (b AlwaysRequeueResultBuilder) BuildRuntimeResult(result Result, err error) reconcile.Result {
	if err != nil {
		switch part := mostUrgent(err, b); part.outcome {
		case Waited:
			return after(part.delay)
		case Stalled, Ignored:
			return after(b.RequeueAfter)
		default:
			return reconcile.Result{}
		}
	}
	switch result {
	case Success:
		return after(b.RequeueAfter)
	case Requeue:
		if b.RequeueAfter > 0 {
			return after(min(b.RequeueAfter, RequeueDelay))
		}
		return after(RequeueDelay)
	default:
		return reconcile.Result{}
	}
}

// EventDrivenResultBuilder is for reconcilers that events of their watches trigger: after
// success and after an ignored error nothing brings the object back but an event.
type EventDrivenResultBuilder struct {
	// RetryAfter is when a stalled object, or an object that waits without a delay, is reconciled
	// again. If it is not positive, a stalled object waits for an event, and the other for a minute.
	RetryAfter time.Duration
}

// BuildRuntimeResult implements RuntimeResultBuilder.
func (b EventDrivenResultBuilder) BuildRuntimeResult(result Result, err error) reconcile.Result {
	if err == nil {
		if result == Requeue {
			return after(RequeueDelay)
		}
		return reconcile.Result{}
	}
	switch part := mostUrgent(err, b); part.outcome {
	case Waited:
		return after(cmp.Or(max(part.delay, 0), max(b.RetryAfter, 0), fallbackDelay))
	case Stalled:
		return after(b.RetryAfter)
	default:
		return reconcile.Result{}
	}
}

func after(d time.Duration) reconcile.Result { return reconcile.Result{RequeueAfter: max(d, 0)} }
