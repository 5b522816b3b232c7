// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"time"

	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// Severity says what an error means for an object.
type Severity string

const (
	// SeverityInfo is progress: Ready is Unknown and Reconciling True. It does not
	// count as an error of the controller.
	SeverityInfo Severity = "Info"
	// SeverityWarning is trouble that may end by itself: Ready is False and Reconciling True.
	// The error is returned to the controller.
	SeverityWarning Severity = "Warning"
	// SeverityError is trouble that does not end by itself: Ready is False and Stalled
	// True. It is tried again all the same, because what ends it may happen elsewhere.
	SeverityError Severity = "Error"
)

// Retry is a retry class: how soon an object is requeued after an error.
type Retry string

const (
	// RetryFast is after 1 s, doubling up to 30 s: for what is likely to end soon, such
	// as a reference to an object that does not exist yet.
	RetryFast Retry = "Fast"
	// RetrySlow is after 5 s, doubling up to 3 min: for what fails elsewhere.
	RetrySlow Retry = "Slow"
	// RetryVerySlow is after the requeue interval: for what does not end by itself.
	RetryVerySlow Retry = "VerySlow"
)

const (
	fastBase, fastLimit = time.Second, 30 * time.Second
	slowBase, slowLimit = 5 * time.Second, 3 * time.Minute
)

// Error is an error with all that a handler may want to say about it. It is found
// through any wrapping. No class is longer than the requeue interval, and the delay
// comes early by up to a tenth at random, so that objects that failed together do not
// come together.
type Error struct {
	// Severity is what the error means. Default is SeverityWarning.
	Severity Severity
	// Reason becomes the reason of the condition, in CamelCase. Default is that
	// of the outcome: Retrying, Error or Stalled.
	Reason string
	// Retry is the retry class. Default is RetryFast for SeverityInfo, RetrySlow
	// for SeverityWarning and RetryVerySlow for SeverityError.
	Retry Retry
	// After, if it is positive, is the delay in place of that of the class, such
	// as what an API asked for.
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

// Unwrap returns the cause in the terms of pkg/result: a Waiting, a Generic or a
// Stalling.
func (e *Error) Unwrap() error { return e.contextual() }

func (e *Error) contextual() error {
	if e == nil {
		return result.NewGeneric(nil, "")
	}
	switch e.Severity {
	case SeverityInfo:
		return result.NewWaiting(e.Err, e.Reason, e.After)
	case SeverityError:
		return result.NewStalling(e.Err, e.Reason)
	default:
		return result.NewGeneric(e.Err, e.Reason)
	}
}

// class returns the retry class, or the default of the severity.
func (e *Error) class() Retry {
	switch e.Severity {
	case SeverityInfo:
		return cmp.Or(e.Retry, RetryFast)
	case SeverityError:
		return cmp.Or(e.Retry, RetryVerySlow)
	default:
		return cmp.Or(e.Retry, RetrySlow)
	}
}

// outcome is that of the error alone.
func (e *Error) outcome() result.Outcome {
	switch e.Severity {
	case SeverityInfo:
		return result.Waited
	case SeverityError:
		return result.Stalled
	default:
		return result.Failed
	}
}

// urgentError returns the Error that says when an object is requeued, after a reconcile
// with this outcome, or nil if none does. Of several errors that were joined, those
// of the outcome count, and of these the one that asks for the shortest delay. The
// outermost counts where they are wrapped in each other; and where a part of
// the same outcome brings no class, the ordinary delay is not put off for the others.
func urgentError(err error, outcome result.Outcome, attempt func(Retry) time.Duration) *Error {
	var chosen *Error
	for _, part := range partsOf(err) {
		own, classified := part.(*Error)
		classified = classified && own != nil
		if !classified && outcome == result.Failed && result.Compute(result.Empty, part, nil).Outcome == result.Failed {
			return nil
		}
		if !classified || own.outcome() != outcome {
			continue
		}
		if chosen == nil || own.delay(attempt) < chosen.delay(attempt) {
			chosen = own
		}
	}
	return chosen
}

// delay returns when this error asks for another reconcile.
func (e *Error) delay(attempt func(Retry) time.Duration) time.Duration {
	if e.After > 0 {
		return e.After
	}
	return attempt(e.class())
}

// partsOf splits joined errors. Each part is an Error, or an error that holds
// none of its own; context from pkg/result around an Error hides it.
func partsOf(err error) []error {
	for e := err; e != nil; e = errors.Unwrap(e) {
		switch c := e.(type) {
		case *Error:
			if c != nil {
				return []error{c}
			}
		case *result.Stalling, *result.Waiting, *result.Generic, types.RetriableError, *types.RetriableError:
			return []error{err}
		}
		if joined, ok := e.(interface{ Unwrap() []error }); ok {
			var parts []error
			for _, branch := range joined.Unwrap() {
				parts = append(parts, partsOf(branch)...)
			}
			return parts
		}
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// RequeueError ends a reconcile without a verdict: nothing is written, and the object is
// requeued. A Handler returns it when it has to wait for a free slot.
type RequeueError struct {
	// After is when the object is requeued. Default is 5 seconds.
	After time.Duration
	// Err says what is waited for; it only goes to the log.
	Err error
}

// Error says what is waited for.
func (e *RequeueError) Error() string {
	if e.Err == nil {
		return "not now"
	}
	return e.Err.Error()
}

// Unwrap returns what is waited for.
func (e *RequeueError) Unwrap() error { return e.Err }

// Transient reports that the error is transient, for the locks of pkg/steps.
func (e *RequeueError) Transient() bool { return true }

// notLeading is when an object is requeued that this process may not act on.
const notLeading = 5 * time.Second

// leading returns a RequeueError if this process may not act.
func (s *Sessions[T]) leading() error {
	err := s.options.Leading()
	if _, ok := errors.AsType[*RequeueError](err); err == nil || ok {
		return err
	}
	return &RequeueError{After: notLeading, Err: err}
}

// requeueLater ends a reconcile.
func requeueLater(ctx context.Context, why *RequeueError) reconcile.Result {
	after := why.After
	if after <= 0 {
		after = notLeading
	}
	logf.FromContext(ctx).V(1).Info("not now; the object is requeued", "why", why.Error(), "after", after)
	return reconcile.Result{RequeueAfter: after}
}
