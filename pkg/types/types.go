// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

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

// SchemeBuilder adds types to a scheme. Generators may implement it to make
// their types known to the client of the target cluster.
type SchemeBuilder interface {
	// AddToScheme adds the types to the scheme.
	AddToScheme(scheme *runtime.Scheme) error
}

// Unstructurable is anything that can be turned into a JSON-like map. The spec
// of a component implements it; generators get it as their parameters.
type Unstructurable interface {
	// ToUnstructured returns the value as a map of JSON types. The caller must
	// not change it.
	ToUnstructured() map[string]any
}

// UnstructurableMap makes a map an Unstructurable.
type UnstructurableMap map[string]any

// ToUnstructured returns the map itself.
func (m UnstructurableMap) ToUnstructured() map[string]any { return m }
