// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"time"
)

// Stalling is an error that no retry cures: a user has to change something
// first. It is not returned to the controller; the object becomes Stalled.
type Stalling struct {
	// Reason becomes the reason of the condition; "Stalled" if empty.
	Reason string
	// Err is the cause.
	Err error
}

// NewStalling returns a Stalling for the cause.
func NewStalling(err error, reason string) *Stalling { return &Stalling{Reason: reason, Err: err} }

// Error returns the message of the cause.
func (e *Stalling) Error() string { return message(value(e).Err, value(e).Reason, "stalled") }

// Unwrap returns the cause.
func (e *Stalling) Unwrap() error { return value(e).Err }

// Waiting is an error that asks for another reconcile after a while. It is not
// returned to the controller and causes no exponential back-off.
type Waiting struct {
	// RequeueAfter is the delay; if it is not positive, the interval of the
	// RuntimeResultBuilder applies.
	RequeueAfter time.Duration
	// Reason becomes the reason of the condition; "Retrying" if empty.
	Reason string
	// Err is the cause.
	Err error
}

// NewWaiting returns a Waiting for the cause.
func NewWaiting(err error, reason string, requeueAfter time.Duration) *Waiting {
	return &Waiting{RequeueAfter: requeueAfter, Reason: reason, Err: err}
}

// Error returns the message of the cause.
func (e *Waiting) Error() string { return message(value(e).Err, value(e).Reason, "waiting") }

// Unwrap returns the cause.
func (e *Waiting) Unwrap() error { return value(e).Err }

// Generic is an ordinary error with a reason. It is returned to the controller,
// unless Ignore is set: then the reconcile counts as if there had been nothing to do.
type Generic struct {
	// Ignore makes the reconcile count as done.
	Ignore bool
	// Reason becomes the reason of the condition; "Error" if empty.
	Reason string
	// Err is the cause.
	Err error
}

// NewGeneric returns a Generic for the cause.
func NewGeneric(err error, reason string) *Generic { return &Generic{Reason: reason, Err: err} }

// Error returns the message of the cause.
func (e *Generic) Error() string { return message(value(e).Err, value(e).Reason, "failed") }

// Unwrap returns the cause.
func (e *Generic) Unwrap() error { return value(e).Err }

// Event is an ordinary error that is worth an event, with a reason. It is returned to the
// controller. In summarize.RecordContextualError every failure is worth one; the
// difference from a Generic is that it cannot be ignored.
type Event struct {
	// Reason becomes the reason of the event and of the condition; "Error" if empty.
	Reason string
	// Err is the cause.
	Err error
}

// NewEvent returns an Event for the cause.
func NewEvent(err error, reason string) *Event { return &Event{Reason: reason, Err: err} }

// Error returns the message of the cause.
func (e *Event) Error() string { return message(value(e).Err, value(e).Reason, "failed") }

// Unwrap returns the cause.
func (e *Event) Unwrap() error { return value(e).Err }

// message returns the message of the cause; without one, the reason or the kind of error.
func message(cause error, reason, kind string) string {
	if cause != nil {
		return cause.Error()
	}
	return cmp.Or(reason, kind)
}

// value makes the zero value of a nil pointer, which a caller may return or join by mistake.
func value[E any](e *E) E { return *cmp.Or(e, new(E)) }
