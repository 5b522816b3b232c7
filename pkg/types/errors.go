// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

import "time"

// RetriableError asks for a retry after a delay, in place of the exponential
// back-off that an ordinary error causes. It is found through any wrapping.
type RetriableError struct {
	err        error
	retryAfter *time.Duration
}

// NewRetriableError wraps err. If retryAfter is nil, the retry interval of the
// component applies.
func NewRetriableError(err error, retryAfter *time.Duration) RetriableError {
	return RetriableError{err: err, retryAfter: retryAfter}
}

// Error returns the message of the wrapped error.
func (e RetriableError) Error() string {
	if e.err == nil {
		return "retry requested"
	}
	return e.err.Error()
}

// Unwrap returns the wrapped error.
func (e RetriableError) Unwrap() error { return e.err }

// Cause returns the wrapped error, like Unwrap.
func (e RetriableError) Cause() error { return e.err }

// RetryAfter returns the delay, or nil if the retry interval of the component applies.
func (e RetriableError) RetryAfter() *time.Duration { return e.retryAfter }
