// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client talks to the API that the resources of one kind of object live behind. Its
// methods do not wait for work that the API does in the background, and end with their
// context, which they have for the option Timeout. They may set fields of the object's
// status, but not its Record. For errors with a severity and a retry class
// see result.Error.
type Client[T Object] interface {
	// Observe looks for the resource by the Record of the object: by its Name if that
	// is known, else by its Token. That it does not exist has to be the answer of
	// the API; if it cannot be found out, that is an error.
	Observe(ctx context.Context, obj T) (Observation, error)
	// Create creates the resource and gives it the Token of the Record, so that
	// Observe finds it. With the same token it is called again if it failed, or if
	// its answer was lost; then there must still be one resource only, unless the option
	// NotIdempotent is set. No request may be sent after the end of the context.
	Create(ctx context.Context, obj T) (Operation, error)
	// Update changes the resource to the state that the object describes.
	Update(ctx context.Context, obj T) (Operation, error)
	// Delete deletes the very resource of the Record. It is no error if it is gone.
	Delete(ctx context.Context, obj T) (Operation, error)
}

// Claimer is a Client that prepares an object before anything is done, see
// lifecycle.Handler.
type Claimer[T Object] interface {
	// Claim prepares the object. An error ends the reconcile.
	Claim(ctx context.Context, obj T) error
}

// Observation is the observed state of a resource.
type Observation struct {
	// Exists reports whether the resource of the Record exists. If it does not, the
	// other fields do not matter.
	Exists bool
	// UpToDate reports whether it is as the object describes.
	UpToDate bool
	// InProgress reports whether the API is still at work on it. Nothing is updated
	// meanwhile.
	InProgress bool
	// Name is how the API names it.
	Name string
	// Message is the reason of the wait, if InProgress is set.
	Message string
}

// Operation is the result of a request.
type Operation struct {
	// Name is how the API names the resource, if Create has learned that.
	Name string
	// InProgress reports whether the API goes on working on it.
	InProgress bool
	// After is when to look again, if InProgress is set. Default is after 1 s,
	// doubling up to 30 s.
	After time.Duration
	// Message is the reason of the wait, if InProgress is set.
	Message string
}

// RefusedError means that a Create has made nothing and will not, such as when the
// API finds the input invalid. The next attempt gets a new token, and a deletion need
// not wait to see whether the resource appears after all.
type RefusedError struct {
	// Err is the answer of the API.
	Err error
}

// Refused returns a RefusedError for the answer of the API. Wrap it for a severity:
// result.NewError(external.Refused(err), result.SeverityError, "Invalid").
func Refused(err error) *RefusedError { return &RefusedError{Err: err} }

// Error returns the answer of the API.
func (e *RefusedError) Error() string {
	if e == nil || e.Err == nil {
		return "refused"
	}
	return e.Err.Error()
}

// Unwrap returns the answer of the API.
func (e *RefusedError) Unwrap() error {
	if e == nil {
		return nil
	}
	return e.Err
}

// Object is an object that keeps a Record of its external resource in its status.
type Object interface {
	client.Object
	// GetExternal returns the record in the object's status, never nil.
	GetExternal() *Record
}

// Phase is how far a creation has come.
type Phase string

const (
	// PhaseCreating means that a Create was about to be sent. Its token shows whether it was, and
	// with which result.
	PhaseCreating Phase = "Creating"
	// PhaseCreated means that the resource was there.
	PhaseCreated Phase = "Created"
)

// Record is the part of the object's status about its external resource. It is written before the
// resource is created. The zero value means that there is none.
type Record struct {
	// Name is how the API names the resource, once that is known.
	// +optional
	Name string `json:"name,omitempty"`
	// Token is given to the API with every attempt at this one creation, and to
	// no other. The resource must be found by it.
	// +optional
	Token string `json:"token,omitempty"`
	// Phase is how far the creation has come.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// Since is when the last Create started, if it may still take effect.
	// +optional
	Since *metav1.MicroTime `json:"since,omitempty"`
}

// DeepCopyInto copies the record.
func (r *Record) DeepCopyInto(out *Record) {
	*out = *r
	out.Since = r.Since.DeepCopy()
}

// DeepCopy returns a copy of the record.
func (r *Record) DeepCopy() *Record {
	if r == nil {
		return nil
	}
	out := &Record{}
	r.DeepCopyInto(out)
	return out
}
