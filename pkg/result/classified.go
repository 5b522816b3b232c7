// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result

import "time"

// Severity tells how bad an error is for an object.
type Severity string

const (
	// SeverityInfo is progress: Ready is Unknown and Reconciling True. It does not
	// count as an error of the controller.
	SeverityInfo Severity = "Info"
	// SeverityWarning is trouble that may end by itself: Ready is False and Reconciling True.
	// The error is returned to the controller.
	SeverityWarning Severity = "Warning"
	// SeverityError is trouble that does not end by itself: Ready is False and Stalled True. It is
	// tried again all the same, because it may end by an event elsewhere.
	SeverityError Severity = "Error"
)

// Retry is a retry class: how soon an object is requeued after an error.
type Retry string

const (
	// RetryFast is after 1 s, doubling up to 30 s: for trouble that is likely to end soon, such as
	// a reference to an object that does not exist yet.
	RetryFast Retry = "Fast"
	// RetrySlow is after 5 s, doubling up to 3 min: for failures elsewhere.
	RetrySlow Retry = "Slow"
	// RetryVerySlow is after the requeue interval: for trouble that does not end by itself.
	RetryVerySlow Retry = "VerySlow"
)

// Error is an error with all facts that a handler may add to it. It is found through any wrapping.
// No class is longer than the requeue interval, and the delay comes early by up to a tenth at
// random, so that objects that failed together do not come together.
type Error struct {
	// Severity is the severity of the error. Default is SeverityWarning.
	Severity Severity
	// Reason becomes the reason of the condition, in CamelCase. Default is the reason of the
	// outcome: Retrying, Error or Stalled.
	Reason string
	// Retry is the retry class. Default is RetryFast for SeverityInfo, RetrySlow
	// for SeverityWarning and RetryVerySlow for SeverityError.
	Retry Retry
	// After, if it is positive, is the delay in place of the delay of the class, such as a delay
	// that an API asked for.
	After time.Duration
	// Err is the cause.
	Err error
}

// NewError returns an Error with the severity and its default retry class.
func NewError(err error, severity Severity, reason string) *Error {
	return &Error{Severity: severity, Reason: reason, Err: err}
}

// Error returns the message of the cause.
func (e *Error) Error() string { return e.contextual().Error() }

// Unwrap returns the cause as a Waiting, a Generic or a Stalling.
func (e *Error) Unwrap() error { return e.contextual() }

func (e *Error) contextual() error {
	switch e := value(e); e.Severity {
	case SeverityInfo:
		return NewWaiting(e.Err, e.Reason, e.After)
	case SeverityError:
		return NewStalling(e.Err, e.Reason)
	default:
		return NewGeneric(e.Err, e.Reason)
	}
}

// RequeueError ends a reconcile without a verdict: nothing is written, and the object is
// requeued. A Handler returns it when it has to wait for a free slot.
type RequeueError struct {
	// After is when the object is requeued. Default is 5 seconds.
	After time.Duration
	// Err is the reason of the wait; it only goes to the log.
	Err error
}

// Error returns the reason of the wait.
func (e *RequeueError) Error() string {
	return message(value(e).Err, "", "not now")
}

// Unwrap returns the reason of the wait.
func (e *RequeueError) Unwrap() error { return value(e).Err }

// Transient reports that the error is transient, for the locks of pkg/steps.
func (e *RequeueError) Transient() bool { return true }
