// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// Cause is why a plan is made.
type Cause int

const (
	// Applying brings the cluster to the desired objects.
	Applying Cause = iota
	// Deleting removes everything that is recorded. Nothing is desired.
	Deleting
)

// Input is everything that a plan depends on.
type Input struct {
	Cause Cause
	// Name is the name of the reconciler: the prefix of our label and annotations.
	Name  string
	Owner Owner
	// Desired are the desired objects, in any order; empty when Deleting.
	Desired []Desired
	// Recorded is the inventory as it is known to be on the server, or as it
	// became by the steps executed since.
	Recorded []v1alpha1.InventoryItem
	// Live are the observations; a missing key means Unknown.
	Live map[Key]Observation
	// Failed are the objects with a last step that failed or was blocked in this reconcile. They
	// are not tried again, and the objects after them wait; only an object that the server cannot
	// change in place may be recreated.
	Failed map[Key]Failure
	// DryRunAccepted are the objects that the server would create again, as a dry run in this
	// reconcile has shown.
	DryRunAccepted map[Key]bool
	// Conflicts are objects that other clients change again and again.
	Conflicts map[Key]Conflict
	// AwaitedBy maps objects that other owners wait for to the names of those owners.
	// Such an object that is no longer desired is handed over to its waiting owner.
	AwaitedBy map[Key]string
	// ManagedTypes are patterns of additional types; their instances are handled
	// like instances of the component's own types.
	ManagedTypes []v1alpha1.TypeInfo
	// MissingNamespaces decides whether missing namespaces are created.
	MissingNamespaces v1alpha1.MissingNamespacesPolicy
	// Protected are objects that are never deleted: the owner itself and its prerequisites. They
	// are orphaned instead.
	Protected map[Key]bool
	// Retain are recorded objects that are not removed, although they are not desired.
	Retain map[Key]bool
	// TimedOut: the objects have not become ready in time; removals that only wait for that are
	// done.
	TimedOut bool
	// RepairOnly: the set is not the final one, so objects that are retained stay on record also if
	// they are absent.
	RepairOnly bool
	// Timeout is how long a namespace with unreadable content is kept, if it was
	// created because objects live in it. Then it is orphaned. Zero means for ever.
	Timeout time.Duration
	// Now decides only about readiness, refreshes, the corrections of objects
	// in conflict and the end of Timeout, never about anything destructive.
	Now time.Time
}

// Failure is why a step was not completed.
type Failure struct {
	// Blocked: the guard of a deletion refused it. Otherwise the step failed.
	Blocked bool
	// Immutable: the server refused to change a field of the live object.
	Immutable bool
	// AlreadyAllocated: the server refused to create the object, because something that it
	// asks for, such as a port, is already allocated.
	AlreadyAllocated bool
	// Webhook is the admission webhook that the server could not call for the step; empty if that is not why it failed.
	Webhook string
	Message string
	// BlockingTypes are the blocking types of the result, if it is blocked.
	BlockingTypes []report.AwaitedObject
}

// Desired is one desired object, resolved and valid.
type Desired struct {
	Key     Key
	Version string
	// Policies are resolved and valid.
	Policies policy.Set
	// Digest identifies the manifest.
	Digest string
	// Hook names the kind of hook of a chart, such as "pre-upgrade", for messages; empty for other
	// objects.
	Hook string
	// HasTTL: the cluster removes the object some time after its end.
	HasTTL bool
	// Defines are the types that a CustomResourceDefinition or APIService brings.
	Defines []v1alpha1.TypeInfo
	// Shared: it is a type that belongs to all components of the reconciler. It is neither recorded nor written by a plan; the engine has
	// written and observed it before.
	Shared bool
	// ScaleTarget is the object that this one scales, if it configures an autoscaler;
	// else nil.
	ScaleTarget *Key
	// Manifest is the object to send, our label and annotation included. It is opaque to the
	// planner and must not be changed. It is nil if it is packed.
	Manifest *unstructured.Unstructured
	// Packed is the manifest as it is kept from one call to the next; else nil.
	Packed Packed
}

// Packed is a manifest in a form that needs little memory.
type Packed interface {
	Unpack() *unstructured.Unstructured
}

// Unpacked returns the object with its manifest at hand.
func (d *Desired) Unpacked() *Desired {
	if d == nil || d.Manifest != nil || d.Packed == nil {
		return d
	}
	unpacked := *d
	unpacked.Manifest = d.Packed.Unpack()
	return &unpacked
}
