// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/rights"
)

// Outcome is what became of a request. It is valid also when the call
// returned an error.
type Outcome struct {
	// Inventory is the record to persist.
	Inventory v1alpha1.Inventory
	// OwnerID is the value of the label owner-id of the owner's objects.
	OwnerID string
	// Unrecorded: the inventory must be saved before anything can be written; it is set only if the request had no Record.
	Unrecorded bool
	// Waiting are the objects that are not settled, and why. No entry
	// and no error means that the request is fulfilled.
	Waiting []Wait
	// Awaited are the objects of other owners that some of them wait for: when one changes,
	// another call may come further.
	Awaited []AwaitedObject
	// Settled and Total count the desired objects (or, in deletion, those that
	// were recorded at the start of this call).
	Settled, Total int
	// ManifestDigest identifies the set of desired manifests.
	ManifestDigest string
	// Desired are the desired objects, for calls that follow; nil if there are mistakes in
	// them, and after a deletion.
	Desired *DesiredSet
	// Returned are objects of ours that existed again, or could not be read, after they had
	// been removed and had been dropped from the inventory. They are in it again.
	Returned []Key
	// Retained are the objects of ApplyRequest.Retain that are there and are not desired.
	Retained []Key
	// NextDriftCheck is when the first object may be read that was not read, because it is
	// edited too often; zero if there is none. No Change follows then.
	NextDriftCheck time.Time
	// Steps counts what was done, by verb, such as "create".
	Steps map[string]int
	// Notes are sentences worth an event: adopted, orphaned, put back, repaired.
	Notes []Note
	// Drifted are the objects that another client changed or deleted and that are not
	// repaired, because their drift policy is to report it.
	Drifted []Deviation
	// Missing are the rights that the server named when it refused requests of this call.
	Missing MissingRights
	// failed: the call returned an error, so it did not come to its end.
	failed bool
}

// Done reports whether nothing is left to do and nothing is waited for. It is false
// if the call returned an error.
func (o Outcome) Done() bool { return !o.failed && !o.Unrecorded && len(o.Waiting) == 0 }

// Key identifies an object.
type Key struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the form that messages use, such as "Deployment shop/api" or
// "ClusterRole reader".
func (k Key) String() string { return plan.Key(k).String() }

// GroupKind returns the type of the object.
func (k Key) GroupKind() schema.GroupKind { return plan.Key(k).GroupKind() }

// Wait is an object that is not settled.
type Wait struct {
	Key     Key        `json:"key"`
	Reason  WaitReason `json:"reason"`
	Message string     `json:"message,omitempty"`
	// Until is when the object is settled without a write; zero if unknown.
	Until time.Time `json:"until,omitzero"`
}

// WaitReason classifies a Wait.
type WaitReason string

// The reasons of waiting.
const (
	WaitReady     = WaitReason(plan.WaitReady)     // the object is not ready yet
	WaitFailed    = WaitReason(plan.WaitFailed)    // the object says that it failed
	WaitOrder     = WaitReason(plan.WaitOrder)     // others come first
	WaitGone      = WaitReason(plan.WaitGone)      // the object is being deleted
	WaitType      = WaitReason(plan.WaitType)      // the type is not served yet
	WaitUnknown   = WaitReason(plan.WaitUnknown)   // the object cannot be read
	WaitForbidden = WaitReason(plan.WaitForbidden) // the user has no right to read the object
	WaitOwner     = WaitReason(plan.WaitOwner)     // the object has another owner
	WaitBlocked   = WaitReason(plan.WaitBlocked)   // the deletion is blocked
	WaitError     = WaitReason(plan.WaitError)     // the last step failed
	WaitConflict  = WaitReason(plan.WaitConflict)  // another client changes the object again and again
	// WaitNamespaceGone: the namespace is being deleted, or does not exist.
	WaitNamespaceGone = WaitReason(plan.WaitNamespaceGone)
)

// Note is a sentence about an object.
type Note struct {
	Key Key `json:"key"`
	// Reason is a word that an event about the note can have as its reason, such as Adopted;
	// empty for a note without one of its own.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
	// Warning is set for a note about harm, such as ForeignInstancesLost.
	Warning bool `json:"warning,omitempty"`
}

// Reasons of notes.
const (
	// NoteAdopted: an object that was there before is a dependent now.
	NoteAdopted = plan.NoteAdopted
	// NoteReleased: an object is no dependent any more and stays.
	NoteReleased = plan.NoteReleased
	// NoteRecreated: an object is deleted to be created again.
	NoteRecreated = plan.NoteRecreated
	// NoteOwnershipRestored: an object has its ownership label and annotation again.
	NoteOwnershipRestored = plan.NoteOwnershipRestored
	// NoteDriftRepaired: an object is as its manifest again.
	NoteDriftRepaired = plan.NoteDriftRepaired
	// NoteLeftAlone: fields are left as another client has set them.
	NoteLeftAlone = plan.NoteLeftAlone
	// NoteAssumedComplete: an object counts as complete, although its end was not seen.
	NoteAssumedComplete = plan.NoteAssumedComplete
)

// Deviation is an object that differs from its manifest, and is not repaired.
type Deviation struct {
	Key Key `json:"key"`
	Drift
}

// Drift is what is known about a deviation.
type Drift struct {
	// Missing: the object was deleted; Replaced: and another one was created in its
	// place. Nothing else is known then.
	Missing  bool `json:"missing,omitempty"`
	Replaced bool `json:"replaced,omitempty"`
	// Expired, with Missing: it had failed, and its time to live removed it.
	Expired bool `json:"expired,omitempty"`
	// Fields are paths of the manifest at which the object differs, such as
	// spec.template.spec.containers[name=api].image; the first few, in order.
	// They are empty if it cannot be said.
	Fields []string `json:"fields,omitempty"`
	// More counts the fields beyond those.
	More int `json:"more,omitempty"`
	// Manager is the field manager that changed them last, and At is when.
	// Both are zero if managedFields do not show it.
	Manager string    `json:"manager,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// String names the manager, the fields and the time.
func (d Drift) String() string { return plan.Drift(d).String() }

// MissingRights are rules to grant, one element for each Namespace with its Rules. An
// empty namespace is the whole cluster. They print themselves as YAML.
type MissingRights = rights.Missing
