// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// PanicError is the error that a panic in a handler, a reconciler, a hook or a generator becomes. It
// does not unwrap: a panic with an error is no answer.
type PanicError struct {
	// Value is the argument of panic.
	Value any
	// Stack is the stack trace. It belongs in the log and is not part of the message.
	Stack []byte
}

// Error returns the panic as the end of a sentence.
func (e *PanicError) Error() string { return fmt.Sprintf("panicked: %v", e.Value) }

// IsGone reports whether an answer of the API server proves that the object of this name does
// not exist. The only proof is a Status with reason NotFound that names the object. A 404 without
// it comes from a path that is not served, a missing namespace, an admission webhook, or a server
// that is not the API server.
func IsGone(err error, name string) bool {
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || apierrors.IsUnexpectedServerError(answer) {
		return false
	}
	status := answer.ErrStatus
	return status.Reason == metav1.StatusReasonNotFound && status.Details != nil && status.Details.Name == name
}

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

// Duration is a duration in a spec, such as "10m" or "1h30m". It can be decoded from anything: a
// value that is no duration is kept as it is and reported by Mistake. So one object that was stored
// with a bad value does not stop the watch of all objects of its type, as it does with
// metav1.Duration.
//
// +kubebuilder:validation:Type=string
type Duration struct {
	// Duration is the value; it is zero if there is a mistake.
	Duration time.Duration `json:"-"`

	mistake string `json:"-"` // the serialised form of a value that is no duration
}

// UnmarshalJSON never fails.
func (d *Duration) UnmarshalJSON(serialised []byte) error {
	*d = Duration{}
	var text *string
	if err := json.Unmarshal(serialised, &text); err == nil && text == nil {
		return nil
	} else if err == nil {
		if d.Duration, err = time.ParseDuration(*text); err == nil {
			return nil
		}
	}
	*d = Duration{mistake: string(serialised)}
	return nil
}

// MarshalJSON returns a value that is no duration as it came.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d.mistake != "" {
		return []byte(d.mistake), nil
	}
	return json.Marshal(d.Duration.String())
}

// Mistake describes the mistake; nil means that the value is a duration.
func (d *Duration) Mistake() error {
	if d == nil || d.mistake == "" {
		return nil
	}
	const shown = 40
	text := []rune(d.mistake)
	if len(text) > shown {
		text = append(text[:shown], '…')
	}
	return fmt.Errorf("%s is no duration; write it like \"90s\", \"10m\" or \"1h30m\"", string(text))
}
