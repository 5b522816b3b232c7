// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/redact"
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

// verdict is the judgement of a pass: all of the status, and what the pass returns.
type verdict struct {
	state                State
	ready                metav1.ConditionStatus
	reconciling, stalled bool
	reason, message      string
	result               result.Result
	err                  error
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
			v.result = result.Success // looked at again at the requeue interval
		}
		return v
	case f.blocked != "":
		return waiting(StateDeleting, metav1.ConditionFalse, v1alpha1.ReasonDeletionBlocked, f.blocked, f.net)
	case f.unreachable != "":
		return waiting(StateError, metav1.ConditionFalse, v1alpha1.ReasonTargetUnreachable, f.unreachable, f.net)
	case f.waiting != "" && f.deleting:
		return waiting(StateDeleting, metav1.ConditionFalse, v1alpha1.ReasonDeletionProcessing, f.waiting, f.net)
	case f.waiting != "" && f.timedOut:
		message := fmt.Sprintf("not ready after %s: %s", f.intervals.timeout, f.waiting)
		return waiting(StateError, metav1.ConditionFalse, v1alpha1.ReasonTimeout, message, f.net)
	case f.waiting != "" && f.failed:
		return waiting(StateError, metav1.ConditionFalse, v1alpha1.ReasonObjectFailed, f.waiting, f.net)
	case f.waiting != "":
		return waiting(StateProcessing, metav1.ConditionUnknown, v1alpha1.ReasonProcessing, f.waiting, f.net)
	case f.claimed:
		return verdict{
			state: StatePending, ready: metav1.ConditionUnknown, reconciling: true,
			reason: v1alpha1.ReasonFirstSeen, message: "the component was seen for the first time", result: result.Requeue,
		}
	case f.deleting:
		return verdict{
			state: StateDeleting, ready: metav1.ConditionFalse, reconciling: true,
			reason: v1alpha1.ReasonDeletionProcessing, message: f.done, result: result.Success,
		}
	default:
		return verdict{
			state: StateReady, ready: metav1.ConditionTrue,
			reason: v1alpha1.ReasonReady, message: f.done, result: result.Success,
		}
	}
}

// waiting is the verdict of a pass that goes on when something happens.
func waiting(state State, ready metav1.ConditionStatus, reason, message string, net time.Duration) verdict {
	return verdict{
		state: state, ready: ready, reconciling: true, reason: reason, message: message,
		err: result.NewWaiting(errors.New(message), reason, net),
	}
}

func judgeError(f facts) verdict {
	err := explain(f.err)
	// The builder gives a Waiting without a delay the retry interval.
	computed := result.Compute(result.Empty, err, result.AlwaysRequeueResultBuilder{RequeueAfter: f.intervals.retry})
	v := verdict{
		state: StateError, ready: metav1.ConditionFalse, reconciling: true,
		reason: computed.Reason, message: steady(f.said, oneLine(f.secrets.Text(computed.Message))), err: err,
	}
	switch computed.Outcome {
	case result.Stalled:
		v.reconciling, v.stalled = false, true
		// The outermost context counts, so the message becomes the one line of Ready.
		v.err = result.NewStalling(worded{err, v.message}, v.reason)
		if f.net > 0 {
			v.err = &soonerError{error: v.err, after: f.net}
		}
	case result.Waited:
		if v.reason == v1alpha1.ReasonForbidden {
			v.err = result.NewWaiting(err, v.reason, f.net)
			break
		}
		v.state, v.ready = StatePending, metav1.ConditionUnknown
		if f.deleting {
			v.state = StateDeletionPending
			if v.reason == v1alpha1.ReasonRetrying {
				v.reason = v1alpha1.ReasonDeletionRetrying
			}
		}
		delay := min(max(computed.Result.RequeueAfter, minInterval), max(maxRetry, f.intervals.retry))
		v.err = result.NewWaiting(err, v.reason, delay)
	case result.Ignored:
		// The pass was cut short all the same; only its hooks may ignore errors.
		v.reason = v1alpha1.ReasonError
		v.err = errors.New(v.message)
	default:
		v.reason = cmp.Or(v.reason, v1alpha1.ReasonError)
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

// soonerError makes a stalled component come again before the requeue interval,
// because some of its objects are under way all the same.
type soonerError struct {
	error
	after time.Duration
}

func (e *soonerError) Unwrap() error { return e.error }
