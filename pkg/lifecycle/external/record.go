// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Object is an object that keeps a Record of its external resource in its status.
type Object interface {
	client.Object
	// GetExternal returns the record in the object's status, never nil.
	GetExternal() *Record
}

// Phase is how far a creation has come.
type Phase string

const (
	// PhaseCreating means that a Create was about to be sent. Whether it was, and
	// what came of it, has to be found out by its token.
	PhaseCreating Phase = "Creating"
	// PhaseCreated means that the resource was there.
	PhaseCreated Phase = "Created"
)

// Record is what the object's status holds about its external resource. It is
// written before the resource is created. The zero value means that there is none.
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
	// Since is when the last Create began, if it may still take effect.
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
