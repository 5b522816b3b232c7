// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package verdict computes the state of a component, its conditions and the result for the
// controller from the facts of a reconcile.
//
// [Evaluate] is pure: the same [Facts] give the same [Verdict], and the table of its test is the
// specification. Errors of the engine get their meaning here. Messages name the objects that
// a component waits for; [FailureReasons] asks the pods of a workload why it is not ready;
// internal/pods has the words.
package verdict

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
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
)

// MinInterval is the shortest interval at which a component is reconciled again.
//
// Limit: the shortest requeue interval, retry interval and timeout of a component.
const MinInterval = time.Second

// DefaultInterval is the interval of a component that has none of its own.
//
// Limit: the default of the requeue interval, less up to 10 % at random.
const DefaultInterval = 10 * time.Minute

// Intervals are how often, and for how long, a component is worked on.
type Intervals struct {
	Requeue, Retry, Timeout time.Duration
}

// Held describes why the next revision does not start, by the reason and the message of Ready.
type Held struct{ Reason, Message string }

// Facts are all that a verdict depends on. At most one of Skipped, FirstSeen, Done,
// RolledBack, Held, Waiting, Blocked, Unreachable and Err is set.
type Facts struct {
	Deleting bool
	// Skipped is the message of a suspended component. SkippedFor is when it is requeued,
	// 0 if not before it changes.
	Skipped    string
	SkippedFor time.Duration
	// FirstSeen: this is the first reconcile of the component.
	FirstSeen bool
	// Done describes the finished work.
	Done string
	// RolledBack is the reason why an earlier revision is applied, which is ready.
	RolledBack string
	// Held is set if the next revision is held back.
	Held Held
	// Waiting describes the awaited objects, Blocked the blockers of the deletion.
	Waiting, Blocked string
	// Unreachable is the reason why the target cluster cannot be reached.
	Unreachable string
	// TimedOut: the wait is longer than the timeout.
	TimedOut bool
	// Settling is the time that containers without a probe have to run, if nothing else is waited for. It is added to the timeout.
	Settling time.Duration
	// Failed: an object that is waited for reports that it failed.
	Failed bool
	// Err is why the reconcile did not finish.
	Err error
	// Fallback is the requeue interval of a component that waits or lacks a right. A stalled component is
	// requeued by it, too, if it is set.
	Fallback  time.Duration
	Intervals Intervals
	// Random, in [0, 1), spreads the regular reconciles of many components a little, so that they do not
	// stay in step forever after a restart.
	Random float64
	// PreviousMessage is the message of condition Ready before the reconcile.
	PreviousMessage string
}

// Verdict is the outcome of a reconcile: all of the status, and the result of Reconcile.
type Verdict struct {
	State                v1alpha1.State
	Ready                metav1.ConditionStatus
	Reconciling, Stalled bool
	// Failed: something is wrong. The state of a component that is deleted does not show it.
	Failed bool
	// Held: the next revision is held back.
	Held            bool
	Reason, Message string
	// After is when the component is requeued if nothing else requeues it; 0 means not before
	// it changes.
	After time.Duration
	// Err is returned to the controller. The rate limiter of the controller decides on the
	// delay of the retry.
	Err error
}

// Result is the verdict as Reconcile returns it. The conditions are set already.
func (v Verdict) Result() result.Verdict {
	return result.Verdict{Reason: v.Reason, Result: ctrl.Result{RequeueAfter: v.After}, Err: backoff.Retried(v.Err)}
}

// SetConditions brings Ready, Reconciling and Stalled in line with the verdict.
func (v Verdict) SetConditions(setter conditions.Setter) {
	switch {
	case v.Reconciling:
		conditions.MarkReconciling(setter, v.Reason, "%s", v.Message)
	case v.Stalled:
		conditions.MarkStalled(setter, v.Reason, "%s", v.Message)
	default:
		conditions.Delete(setter, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled)
	}
	conditions.Set(setter, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: v.Ready, Reason: v.Reason, Message: v.Message,
	})
}

// Jitter is the greatest share by which a regular reconcile comes early.
const Jitter = 0.1

// RegularRequeue returns when the next regular reconcile is due.
func (f Facts) RegularRequeue() time.Duration {
	return backoff.Jitter(f.Intervals.Requeue, -Jitter, f.Random)
}

// Evaluate returns the verdict about the facts. It is pure: the same facts give the same
// verdict. The table of its test is the specification.
func Evaluate(f Facts) Verdict {
	v := f.evaluate()
	if v.Failed = v.State == v1alpha1.StateError; v.Failed && f.Deleting {
		v.State = v1alpha1.StateDeleting // reason and message describe the error
	}
	v.Message = confidential.Filter(v.Message)
	return v
}

func (f Facts) evaluate() Verdict {
	switch {
	case f.Err != nil:
		return evaluateError(f)
	case f.Skipped != "":
		return Verdict{
			State: v1alpha1.StateSuspended, Ready: metav1.ConditionUnknown,
			Reason: vocabulary.ReasonSuspended, Message: sentence.OneLine(f.Skipped), After: f.SkippedFor,
		}
	case f.Blocked != "":
		return f.wait(v1alpha1.StateDeleting, metav1.ConditionFalse, vocabulary.ReasonDeletionBlocked, f.Blocked)
	case f.Unreachable != "":
		return f.wait(v1alpha1.StateError, metav1.ConditionFalse, vocabulary.ReasonTargetUnreachable, f.Unreachable)
	case f.Waiting != "" && f.Deleting:
		return f.wait(v1alpha1.StateDeleting, metav1.ConditionFalse, vocabulary.ReasonDeletionProcessing, f.Waiting)
	case f.Waiting != "" && f.TimedOut:
		message := fmt.Sprintf("not ready after %s: %s", f.Intervals.Timeout, f.Waiting)
		return f.wait(v1alpha1.StateError, metav1.ConditionFalse, vocabulary.ReasonTimeout, message)
	case f.Waiting != "" && f.Failed:
		return f.wait(v1alpha1.StateError, metav1.ConditionFalse, vocabulary.ReasonObjectFailed, f.Waiting)
	case f.Waiting != "":
		return f.wait(v1alpha1.StateProcessing, metav1.ConditionUnknown, vocabulary.ReasonProcessing, f.Waiting)
	case f.FirstSeen:
		return unfinished(v1alpha1.StatePending, metav1.ConditionUnknown, vocabulary.ReasonFirstSeen, "the component was seen for the first time", result.RequeueDelay)
	case f.Deleting:
		return unfinished(v1alpha1.StateDeleting, metav1.ConditionFalse, vocabulary.ReasonDeletionProcessing, f.Done, f.RegularRequeue())
	case f.Held.Message != "":
		v := unfinished(v1alpha1.StatePending, metav1.ConditionUnknown, f.Held.Reason, sentence.OneLine(f.Held.Message), f.RegularRequeue())
		v.Held = true
		return v
	case f.RolledBack != "":
		return Verdict{
			State: v1alpha1.StateError, Ready: metav1.ConditionFalse, Stalled: true,
			Reason: vocabulary.ReasonRolledBack, Message: sentence.OneLine(f.RolledBack), After: f.RegularRequeue(),
		}
	default:
		return Verdict{
			State: v1alpha1.StateReady, Ready: metav1.ConditionTrue,
			Reason: vocabulary.ReasonReady, Message: f.Done, After: f.RegularRequeue(),
		}
	}
}

// wait is the verdict of a reconcile that waits for an event.
func (f Facts) wait(state v1alpha1.State, ready metav1.ConditionStatus, reason, message string) Verdict {
	return unfinished(state, ready, reason, message, cmp.Or(f.Fallback, f.RegularRequeue()))
}

func unfinished(state v1alpha1.State, ready metav1.ConditionStatus, reason, message string, after time.Duration) Verdict {
	return Verdict{State: state, Ready: ready, Reconciling: true, Reason: reason, Message: message, After: after}
}

func evaluateError(f Facts) Verdict {
	err := explain(f.Err)
	// The builder gives a Waiting without a delay the retry interval.
	computed := result.Compute(result.Empty, err, result.AlwaysRequeueResultBuilder{RequeueAfter: f.Intervals.Retry})
	v := Verdict{
		State: v1alpha1.StateError, Ready: metav1.ConditionFalse, Reconciling: true,
		Reason: computed.Reason, Message: Steady(f.PreviousMessage, confidential.Filter(sentence.OneLine(computed.Message)), varying),
	}
	switch computed.Outcome {
	case result.Stalled:
		v.Reconciling, v.Stalled = false, true
		if v.After = f.RegularRequeue(); f.Fallback > 0 {
			v.After = min(v.After, f.Fallback) // some of its objects are under way all the same
		}
	case result.Waited:
		if v.Reason == vocabulary.ReasonForbidden {
			v.After = cmp.Or(f.Fallback, f.RegularRequeue())
			break
		}
		v.State, v.Ready = v1alpha1.StatePending, metav1.ConditionUnknown
		if f.Deleting {
			v.State = v1alpha1.StateDeletionPending
			if v.Reason == vocabulary.ReasonRetrying {
				v.Reason = vocabulary.ReasonDeletionRetrying
			}
		}
		v.After = min(max(computed.Result.RequeueAfter, MinInterval), max(maxRetry, f.Intervals.Retry))
	case result.Ignored:
		// A hook may ask to ignore its error. A reconcile may not: it has ended early.
		v.Reason, v.Err = vocabulary.ReasonError, errors.New(v.Message)
	default:
		v.Reason, v.Err = cmp.Or(v.Reason, vocabulary.ReasonError), err
	}
	return v
}

// maxRetry is the longest delay that an error can ask for, unless the component's
// own retry interval is longer: nothing is put off for good.
//
// Limit: the longest delay that an error can ask for, unless the retry interval is longer.
const maxRetry = 24 * time.Hour

// MessageError is an error with another message.
type MessageError struct {
	Err     error
	Message string
}

func (e MessageError) Error() string { return e.Message }
func (e MessageError) Unwrap() error { return e.Err }

// UnfinishedError ends a reconcile that has to be followed by another one: the facts name the
// awaited objects, and when to look again. In most cases it is no failure: it is an error only
// because it ends the reconcile from wherever it is, as an error does.
type UnfinishedError struct {
	Facts Facts
	// Cause is nil if nothing is wrong.
	Cause error
}

func (e *UnfinishedError) Error() string {
	if e.Cause != nil {
		return e.Cause.Error()
	}
	return e.Facts.Waiting + e.Facts.Blocked
}

func (e *UnfinishedError) Unwrap() error { return e.Cause }

// NextChange returns when the first of the objects changes its readiness by itself or is
// corrected again; zero if none does.
func NextChange(waits []report.Wait) time.Time {
	var next time.Time
	for _, wait := range waits {
		if !wait.Until.IsZero() && (next.IsZero() || wait.Until.Before(next)) {
			next = wait.Until
		}
	}
	return next
}

// moving are the reasons of waits that end by themselves.
var moving = []report.WaitReason{
	report.WaitReady, report.WaitGone, report.WaitType, report.WaitNamespaceGone, report.WaitUnknown,
}

// StillMoving reports whether anything goes on, beside the failures.
func StillMoving(waits []report.Wait) bool {
	return slices.ContainsFunc(waits, func(wait report.Wait) bool {
		return slices.Contains(moving, wait.Reason)
	})
}

// AnyFailed reports whether an object reports a failure, such as a Job that has reached its limit.
// It may recover, or be replaced, so it is waited for all the same.
func AnyFailed(waits []report.Wait) bool {
	return slices.ContainsFunc(waits, func(wait report.Wait) bool { return wait.Reason == report.WaitFailed })
}
