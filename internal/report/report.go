// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Key identifies an object.
type Key struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns the form that messages use, such as "Deployment shop/api" or
// "ClusterRole reader".
func (k Key) String() string {
	if k.Namespace == "" {
		return k.Kind + " " + k.Name
	}
	return k.Kind + " " + k.Namespace + "/" + k.Name
}

// GroupKind returns the type of the object.
func (k Key) GroupKind() schema.GroupKind { return schema.GroupKind{Group: k.Group, Kind: k.Kind} }

// Compare orders keys by group, kind, namespace and name.
func (k Key) Compare(other Key) int {
	return cmp.Or(
		cmp.Compare(k.Group, other.Group), cmp.Compare(k.Kind, other.Kind),
		cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name),
	)
}

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
	WaitReady     WaitReason = "NotReady"      // the object is not ready yet
	WaitFailed    WaitReason = "ObjectFailed"  // the object reports a failure
	WaitOrder     WaitReason = "Order"         // other objects come first
	WaitGone      WaitReason = "Terminating"   // the object is being deleted
	WaitType      WaitReason = "TypeNotServed" // the type is not served yet
	WaitUnknown   WaitReason = "Unknown"       // the object cannot be read
	WaitForbidden WaitReason = "Forbidden"     // the user has no right to read the object
	WaitOwner     WaitReason = "OwnerConflict" // the object has another owner
	WaitBlocked   WaitReason = "Blocked"       // the deletion is blocked
	WaitError     WaitReason = "StepFailed"    // the last step failed
	WaitConflict  WaitReason = "FieldConflict" // another client changes the object again and again
	// WaitNamespaceGone: the namespace is being deleted, or does not exist.
	WaitNamespaceGone WaitReason = "NamespaceTerminating"
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

// The reasons of notes that are information.
const (
	// NoteAdopted means that an object that existed before is a dependent now.
	//
	// Event type: Normal
	// What to do: nothing. To prevent it, set the annotation adoption-policy: never.
	NoteAdopted = "Adopted"
	// NoteReleased means that an object is no dependent any more and stays: it is orphaned, or another owner has
	// taken it over.
	//
	// Event type: Normal
	// What to do: delete an orphaned object by hand when it is not needed any more.
	NoteReleased = "Released"
	// NoteRecreated means that an object is deleted and created again, because of its update policy.
	//
	// Event type: Normal
	// What to do: nothing. To prevent it, set the annotation update-policy: replace.
	NoteRecreated = "Recreated"
	// NoteOwnershipRestored means that another client had removed the ownership label or annotation of an object,
	// and the operator has restored them.
	//
	// Event type: Normal
	// What to do: if it happens again, find the client.
	NoteOwnershipRestored = "OwnershipRestored"
	// NoteDriftRepaired means that another client had changed or deleted an object, and the operator has repaired
	// it. The note names the client, the change and the time.
	//
	// Event type: Normal
	// What to do: nothing. If the other client owns the field, name the field in the annotation ignore-fields.
	NoteDriftRepaired = "DriftRepaired"
	// NoteLeftAlone means that a changed manifest does not overwrite fields of another client, such as replicas
	// that were set through the subresource scale.
	//
	// Event type: Normal
	// What to do: leave the field out of the manifest, or scale the object in the same way as before.
	NoteLeftAlone = "LeftAlone"
	// NoteAssumedComplete means that an object with a time to live counts as complete, because it was removed
	// while nothing watched it.
	//
	// Event type: Normal
	// What to do: check the result of the object, such as a Job. A changed manifest runs it again.
	NoteAssumedComplete = "AssumedComplete"
)

// The reasons of warnings.
const (
	// WarnForeignInstancesLost means that another client created instances of a type during its deletion, and they
	// were deleted with it.
	//
	// Event type: Warning
	// What to do: create them again, if they are needed, once the type exists.
	WarnForeignInstancesLost = "ForeignInstancesLost"
	// WarnForeignContentLost means that another client created objects in a namespace during its deletion, and
	// they were deleted with it.
	//
	// Event type: Warning
	// What to do: create them again in another namespace, if they are needed.
	WarnForeignContentLost = "ForeignContentLost"
	// WarnContentUnknown means that a namespace is orphaned, because the operator could not list all types in it
	// and objects of other owners may be there.
	//
	// Event type: Warning
	// What to do: look into the namespace, and delete it by hand if it is not needed.
	WarnContentUnknown = "NamespaceContentUnknown"
	// WarnKeptForOrphan means that a namespace or a type is orphaned, because it contains an orphaned object.
	//
	// Event type: Warning
	// What to do: delete it by hand when its content is not needed any more.
	WarnKeptForOrphan = "KeptForOrphan"
	// WarnConflict means that another client changes or deletes an object again and again. The operator repairs it
	// less and less often, in the end every 5 minutes.
	//
	// Event type: Warning
	// What to do: name the field in the annotation ignore-fields, or stop the other client.
	WarnConflict = "FieldConflict"
	// WarnOrphanFound means that an object has the ownership label and annotation of the component and was in no
	// inventory. It is a dependent from now on, or is removed.
	//
	// Event type: Warning
	// What to do: if it happens again, look for a second operator, or for a backup that was restored.
	WarnOrphanFound = "OrphanFound"
	// WarnServer means that the API server answered a write with a warning: an unknown field, a deprecated
	// version, or a policy that would refuse the pods.
	//
	// Event type: Warning
	// What to do: correct the manifest.
	WarnServer = "ServerWarning"
)

// Deviation is an object that differs from its manifest, and is not repaired.
type Deviation struct {
	Key Key `json:"key"`
	Drift
}

// Drift describes a deviation.
type Drift struct {
	// Missing: the object was deleted; Replaced: and another one was created in its
	// place. Nothing else is known then.
	Missing  bool `json:"missing,omitempty"`
	Replaced bool `json:"replaced,omitempty"`
	// Expired, with Missing: it had failed, and its time to live removed it.
	Expired bool `json:"expired,omitempty"`
	// Fields are paths of the manifest at which the object differs, such as
	// spec.template.spec.containers[name=api].image; the first few, in order. They are empty if
	// they are not known.
	Fields []string `json:"fields,omitempty"`
	// More counts the fields beyond those.
	More int `json:"more,omitempty"`
	// Manager is the field manager that changed them last, and At is when.
	// Both are zero if managedFields do not show it.
	Manager string    `json:"manager,omitempty"`
	At      time.Time `json:"at,omitzero"`
}

// String names the manager, the fields and the time.
func (d Drift) String() string {
	switch {
	case d.Replaced:
		return "another client deleted it and created another one"
	case d.Expired:
		return "it had failed, and its time to live removed it"
	case d.Missing:
		return "another client deleted it"
	}
	text := d.Edit("changed")
	if !d.At.IsZero() {
		text += " at " + d.At.UTC().Format(time.RFC3339)
	}
	return text
}

// Edit names the manager and the fields, with a verb between them.
func (d Drift) Edit(verb string) string {
	manager, fields := cmp.Or(d.Manager, "another client"), "it"
	if len(d.Fields) > 0 {
		fields = strings.Join(d.Fields, ", ")
		if d.More > 0 {
			fields += fmt.Sprintf(" and %d more", d.More)
		}
	}
	return manager + " " + verb + " " + fields
}
