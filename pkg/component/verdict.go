// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

// facts are all that a verdict depends on. At most one of skipped, claimed, done,
// waiting, blocked, unreachable and err is set.
type facts struct {
	deleting bool
	// skipped says why nothing is done.
	skipped skip
	// claimed: the component was just seen and claimed.
	claimed bool
	// done says what was achieved.
	done string
	// waiting says what is waited for, blocked what blocks the deletion.
	waiting, blocked string
	// unreachable says why the target cluster cannot be reached.
	unreachable string
	// timedOut: it is waited for longer than the timeout allows.
	timedOut bool
	// failed: what is waited for says that it failed.
	failed bool
	// err is why the pass came to no end.
	err error
	// net is when the component comes again if nothing wakes it, while it waits or
	// lacks a right or, if set, while it is stalled.
	net       time.Duration
	intervals intervals
	// random spreads the regular reconciles of many components a little, so that they do not
	// stay in step forever after a restart. Nil means not at all.
	random func() float64
	// said is the message of condition Ready before the pass.
	said string
	// secrets are kept out of the message.
	secrets *redact.Secrets
}

// skip is a reason to leave the dependents alone.
type skip string

const (
	notSkipped      skip = ""
	skippedBySpec   skip = "suspended"
	skippedByPolicy skip = "the management policy of the component is skip"
)

// verdict is the judgement of a reconcile: all of the status, and what Reconcile returns.
type verdict struct {
	state                State
	ready                metav1.ConditionStatus
	reconciling, stalled bool
	reason, message      string
	// after is when the component is reconciled again if nothing wakes it; 0 means not before
	// it changes.
	after time.Duration
	// err is returned to the controller, whose rate limiter says when it is tried again.
	err error
}

// returned is the verdict as Reconcile returns it. The conditions are set already.
func (v verdict) returned() result.Verdict {
	outcome := result.Waited
	switch {
	case v.err != nil:
		outcome = result.Failed
	case v.stalled:
		outcome = result.Stalled
	case v.ready == metav1.ConditionTrue:
		outcome = result.Succeeded
	}
	return result.Verdict{
		Outcome: outcome, Reason: v.reason, Message: v.message,
		Result: ctrl.Result{RequeueAfter: v.after}, Err: backoff.Retried(v.err),
	}
}

// jitter is the greatest share by which a regular reconcile comes early.
const jitter = 0.1

// regularly is when the next regular reconcile is due.
func (f facts) regularly() time.Duration {
	if f.random == nil {
		return f.intervals.requeue
	}
	return f.intervals.requeue - time.Duration(float64(f.intervals.requeue)*jitter*f.random())
}

// judge is pure: the same facts give the same verdict. The table of its test is
// the specification.
func judge(f facts) verdict {
	switch {
	case f.err != nil:
		return judgeError(f)
	case f.skipped != notSkipped:
		v := verdict{state: StatePending, ready: metav1.ConditionUnknown, reason: v1alpha1.ReasonSuspended, message: string(f.skipped)}
		if f.skipped == skippedByPolicy {
			v.after = f.regularly()
		}
		return v
	case f.blocked != "":
		return f.wait(StateDeleting, metav1.ConditionFalse, v1alpha1.ReasonDeletionBlocked, f.blocked)
	case f.unreachable != "":
		return f.wait(StateError, metav1.ConditionFalse, v1alpha1.ReasonTargetUnreachable, f.unreachable)
	case f.waiting != "" && f.deleting:
		return f.wait(StateDeleting, metav1.ConditionFalse, v1alpha1.ReasonDeletionProcessing, f.waiting)
	case f.waiting != "" && f.timedOut:
		message := fmt.Sprintf("not ready after %s: %s", f.intervals.timeout, f.waiting)
		return f.wait(StateError, metav1.ConditionFalse, v1alpha1.ReasonTimeout, message)
	case f.waiting != "" && f.failed:
		return f.wait(StateError, metav1.ConditionFalse, v1alpha1.ReasonObjectFailed, f.waiting)
	case f.waiting != "":
		return f.wait(StateProcessing, metav1.ConditionUnknown, v1alpha1.ReasonProcessing, f.waiting)
	case f.claimed:
		return verdict{
			state: StatePending, ready: metav1.ConditionUnknown, reconciling: true,
			reason: v1alpha1.ReasonFirstSeen, message: "the component was seen for the first time", after: result.RequeueDelay,
		}
	case f.deleting:
		return verdict{
			state: StateDeleting, ready: metav1.ConditionFalse, reconciling: true,
			reason: v1alpha1.ReasonDeletionProcessing, message: f.done, after: f.regularly(),
		}
	default:
		return verdict{
			state: StateReady, ready: metav1.ConditionTrue,
			reason: v1alpha1.ReasonReady, message: f.done, after: f.regularly(),
		}
	}
}

// wait is the verdict of a reconcile that goes on when something happens.
func (f facts) wait(state State, ready metav1.ConditionStatus, reason, message string) verdict {
	return verdict{
		state: state, ready: ready, reconciling: true, reason: reason, message: message,
		after: cmp.Or(f.net, f.regularly()),
	}
}

func judgeError(f facts) verdict {
	err := explain(f.err)
	// The builder gives a Waiting without a delay the retry interval.
	computed := result.Compute(result.Empty, err, result.AlwaysRequeueResultBuilder{RequeueAfter: f.intervals.retry})
	v := verdict{
		state: StateError, ready: metav1.ConditionFalse, reconciling: true,
		reason: computed.Reason, message: steady(f.said, oneLine(f.secrets.Text(computed.Message))),
	}
	switch computed.Outcome {
	case result.Stalled:
		v.reconciling, v.stalled = false, true
		if v.after = f.regularly(); f.net > 0 {
			v.after = min(v.after, f.net) // some of its objects are under way all the same
		}
	case result.Waited:
		if v.reason == v1alpha1.ReasonForbidden {
			v.after = cmp.Or(f.net, f.regularly())
			break
		}
		v.state, v.ready = StatePending, metav1.ConditionUnknown
		if f.deleting {
			v.state = StateDeletionPending
			if v.reason == v1alpha1.ReasonRetrying {
				v.reason = v1alpha1.ReasonDeletionRetrying
			}
		}
		v.after = min(max(computed.Result.RequeueAfter, minInterval), max(maxRetry, f.intervals.retry))
	case result.Ignored:
		// The reconcile was cut short all the same; only its hooks may ignore errors.
		v.reason, v.err = v1alpha1.ReasonError, errors.New(v.message)
	default:
		v.reason, v.err = cmp.Or(v.reason, v1alpha1.ReasonError), err
	}
	return v
}

// maxRetry is the longest delay that an error can ask for, unless the component's
// own retry interval is longer: nothing is put off for good.
const maxRetry = 24 * time.Hour

// worded is an error with another message.
type worded struct {
	err     error
	message string
}

func (e worded) Error() string { return e.message }
func (e worded) Unwrap() error { return e.err }

// unfinishedError ends a reconcile that has to be followed by another one: the facts say
// what is waited for, and when to look again.
type unfinishedError struct {
	facts facts
	// cause is nil if nothing is wrong.
	cause error
}

func (e *unfinishedError) Error() string {
	if e.cause != nil {
		return e.cause.Error()
	}
	return e.facts.waiting + e.facts.blocked
}

func (e *unfinishedError) Unwrap() error { return e.cause }

// minNet is the shortest delay between two passes that wait.
const minNet = 50 * time.Millisecond

// net is when a component comes again that waits: later and later as long as
// nothing moves, but no later than an object settles by itself.
func (h *handler[T]) net(known *remembered, waits []reconciler.Wait) time.Duration {
	net := known.idle.Idle()
	now := h.now()
	if len(waits) > 0 && !slices.ContainsFunc(waits, func(wait reconciler.Wait) bool { return wait.Reason != reconciler.WaitConflict }) {
		net = defaultRequeueInterval // nothing moves before the time of the next correction
	}
	if next := nextOf(waits); !next.IsZero() {
		net = min(net, max(next.Sub(now), minNet))
	}
	return net
}

// nextOf is when the first of the objects settles by itself or is corrected again; zero
// if none does.
func nextOf(waits []reconciler.Wait) time.Time {
	var next time.Time
	for _, wait := range waits {
		if !wait.Until.IsZero() && (next.IsZero() || wait.Until.Before(next)) {
			next = wait.Until
		}
	}
	return next
}

// moving are the reasons of waits that end without anybody doing something.
var moving = []reconciler.WaitReason{
	reconciler.WaitReady, reconciler.WaitGone, reconciler.WaitType, reconciler.WaitNamespaceGone, reconciler.WaitUnknown,
}

// stillMoving tells whether anything goes on, beside what has failed.
func stillMoving(waits []reconciler.Wait) bool {
	return slices.ContainsFunc(waits, func(wait reconciler.Wait) bool {
		return slices.Contains(moving, wait.Reason)
	})
}

// anyFailed tells whether an object says that it failed, such as a Job that has
// reached its limit. It may recover, or be replaced, so it is waited for all the same.
func anyFailed(waits []reconciler.Wait) bool {
	return slices.ContainsFunc(waits, func(wait reconciler.Wait) bool { return wait.Reason == reconciler.WaitFailed })
}
