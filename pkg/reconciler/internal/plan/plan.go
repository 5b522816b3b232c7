// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
)

// Plan is the next batch of work. It is a value: it holds no client and can be
// compared, printed and stored.
type Plan struct {
	// Inventory is the record to keep. If MustRecord, it must be durable
	// before any step is executed.
	Inventory  []v1alpha1.InventoryItem
	MustRecord bool
	// Gone are the records that are dropped because the objects do not exist
	// any more.
	Gone []v1alpha1.InventoryItem
	// Steps are ordered by Stage. Steps of one stage do not depend on each
	// other; a failed step holds back the later stages.
	Steps []Step
	// Waiting are the objects that are not settled, and why.
	Waiting []Wait
	// Notes are messages for users that need no request.
	Notes []Note
	// Deviations are objects that have drifted and are not repaired.
	Deviations []Deviation
	// Ignored are desired objects that exist, are not ours, and are not changed.
	Ignored []Key
	// Retained are recorded objects that are not desired and stay because of Input.Retain.
	Retained []Key
	// Settled and Total count the desired objects but for ignored ones, or in deletion the recorded ones.
	Settled, Total int
}

// Done reports whether nothing is left to do and nothing is waited for.
func (p Plan) Done() bool { return len(p.Steps) == 0 && len(p.Waiting) == 0 }

// Verb is the kind of a step.
type Verb string

const (
	// VerbCreate creates an object that must not exist, by POST or by server-side apply, depending
	// on its update policy.
	VerbCreate Verb = "create"
	// VerbReplace sends the manifest as a PUT.
	VerbReplace Verb = "replace"
	// VerbMerge sends the manifest as a server-side apply.
	VerbMerge Verb = "merge"
	// VerbOverride is VerbMerge that also reclaims the fields of one-off managers.
	VerbOverride Verb = "override"
	// VerbMark puts our label and annotation back on an object of ours, and changes nothing else.
	VerbMark Verb = "mark"
	// VerbDryRun asks the server whether it would create the object again. It
	// changes nothing, and comes before the deletion of an object that is recreated.
	VerbDryRun Verb = "dry-run"
	// VerbDelete deletes the object of the given uid.
	VerbDelete Verb = "delete"
	// VerbOrphan removes our label and annotation. From then on the object is not changed.
	VerbOrphan Verb = "orphan"
)

// Reason is why a step is planned; it is shown to users.
type Reason string

const (
	ReasonMissing          Reason = "missing"
	ReasonManifestChanged  Reason = "manifest changed"
	ReasonDrifted          Reason = "drifted"
	ReasonOwnershipLost    Reason = "ownership label or annotation is missing"
	ReasonOwnershipShared  Reason = "has the label or annotation of another owner"
	ReasonAdopted          Reason = "adopted"
	ReasonUnconfirmed      Reason = "last write not confirmed"
	ReasonReapply          Reason = "reapply due"
	ReasonDigestKeyChanged Reason = "digest key changed"
	ReasonRecreate         Reason = "recreate"
	ReasonRedundant        Reason = "redundant"
	ReasonPurged           Reason = "purge due"
	ReasonOwnedByOthers    Reason = "owned by others"
	ReasonDeleting         Reason = "component deleted"
)

// Step is one request to the cluster, or a few that belong together.
type Step struct {
	Verb    Verb
	Key     Key
	Version string // API version that the object is addressed with
	// Stage orders the steps of a plan.
	Stage  int
	Reason Reason
	// UID and ResourceVersion identify the object that the plan saw. The server refuses every write
	// if they no longer hold. Both are empty for VerbCreate, which demands absence.
	UID             types.UID
	ResourceVersion string
	// Ownership are the signs of ownership that the plan saw, see [Step.StillApplies].
	Ownership Ownership
	// Guard is checked immediately before a deletion.
	Guard Guard
	// Owner is the owner that the step is made for.
	Owner Owner
	// OwnInstances are, if it is about instances, the recorded instances of the types that
	// the object defines. All other instances are foreign: they block the deletion of the type.
	OwnInstances []Key
	// Finalizers are the live finalizers, which a PUT has to carry over.
	Finalizers []string
	// HasOwnerReferences: the object has ownerReferences, which a PUT has to carry over.
	HasOwnerReferences bool
	// Shared: the object is a namespace that was created for another component, which has left it. It has no mark of ours.
	Shared bool
	// Removes are the uids of recorded objects that are removed with the same plan or a later one. An orphan must not
	// refer to them: the garbage collector would delete it with them.
	Removes []types.UID
	// Carried and Reclaims are copied from the observation.
	Carried  string
	Reclaims bool
	// PreviousOwner names the owner that an adopted object belongs to.
	PreviousOwner string
	// Desired is the desired object; nil if it is no longer desired.
	Desired *Desired
	// Scaled: the number of replicas was set through the subresource scale. It is not
	// changed unless the manifest has another number than when it was last written.
	// Autoscaled: an autoscaler decides about it, so that it is not changed in any case.
	Scaled, Autoscaled bool
	// Drift is the drift that the step undoes, if another client changed or deleted the object; nil
	// if the step has another reason.
	Drift *report.Drift
	// SkipIfUnchanged: the object was created of this manifest according to the record. It is written
	// only if it differs.
	SkipIfUnchanged bool
	// ItemAfter is the record once the step succeeded; the uid and the hashes are filled in from
	// the server's answer. VerbDelete and VerbOrphan keep no record; a guard reads the orphaned
	// instances from it. If the guard cannot read the content of a namespace, ItemAfter has since
	// when, and when that was last recorded; nil means now.
	ItemAfter v1alpha1.InventoryItem
}

// Attempt identifies a step on an object in its present state.
type Attempt struct {
	Verb Verb
	Key  Key
	UID  types.UID
}

// Attempt returns what identifies the step.
func (s Step) Attempt() Attempt { return Attempt{s.Verb, s.Key, s.UID} }

// StillApplies reports whether a deletion or an orphaning that was planned for an object still
// applies: it is the same object, and its owner has not changed. So the plan's decision about its
// ownership holds, whatever else has changed since, and the step may be sent again with the newer
// resourceVersion.
func (s Step) StillApplies(live Observation) bool {
	return live.Existence == Present && live.UID == s.UID &&
		live.Ownership.OwnerID == s.Ownership.OwnerID && live.Ownership.Ref == s.Ownership.Ref &&
		slices.Equal(live.Ownership.OtherOwners, s.Ownership.OtherOwners)
}

// Guard is a condition on the cluster that must hold for a deletion.
type Guard string

const (
	// GuardNone: no condition.
	GuardNone Guard = ""
	// GuardNoInstances: no instance of the types that the object defines exists.
	GuardNoInstances Guard = "no instances"
	// GuardNoInstancesElseOrphan: like GuardNoInstances, but a type of which no other
	// instances exist than orphaned ones is orphaned, not deleted.
	GuardNoInstancesElseOrphan Guard = "no instances, else orphaned"
	// GuardEmpty: nothing but ignored kinds lives in the namespace; otherwise the deletion is blocked.
	GuardEmpty Guard = "empty"
	// GuardEmptyElseOrphan: like GuardEmpty, but a namespace in use is orphaned, not deleted.
	// Content that cannot be read blocks it for Input.Timeout at most.
	GuardEmptyElseOrphan Guard = "empty, else orphaned"
	// GuardKnownEmptyElseOrphan: like GuardEmptyElseOrphan, but a namespace with
	// unreadable content is orphaned as well, because that has lasted for too long.
	GuardKnownEmptyElseOrphan Guard = "known to be empty, else orphaned"
)

// Result is the result of one step.
type Result struct {
	Step Step
	// Observation is the state of the object afterwards: the object in the server's answer, Absent
	// if the server answered that a deletion is complete, or Unknown if the outcome is not known.
	Observation Observation
	// Blocked is why the guard of a deletion refused it; nothing was done then.
	Blocked string
	// BlockingTypes are the types of the objects that block the deletion: when some of them are gone,
	// it may be tried again.
	BlockingTypes []report.AwaitedObject
	// ContentUnknown is set if the guard could not find out whether a namespace is empty,
	// because some of its content cannot be read.
	ContentUnknown bool
	// Orphaned is set if the object was orphaned instead of deleted.
	Orphaned bool
	// Replicas is the number of replicas that the manifest asks for, of an object that
	// can be scaled; nil if it asks for none.
	Replicas *int64
	// Notes are messages for users about the findings of the step, whatever its outcome.
	Notes []Note
	// Err is why the step failed. It names the object.
	Err error
}

// String returns the plan as text, one line per step, wait and note.
func (p Plan) String() string {
	var b strings.Builder
	if p.MustRecord {
		fmt.Fprintf(&b, "record   %d objects\n", len(p.Inventory))
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%-8s %s: %s", s.Verb, s.Key, s.Reason)
		if s.Guard != GuardNone {
			fmt.Fprintf(&b, " (if %s)", s.Guard)
		}
		if s.SkipIfUnchanged {
			b.WriteString(" (if it differs)")
		}
		b.WriteByte('\n')
	}
	for _, wait := range p.Waiting {
		fmt.Fprintf(&b, "wait     %s: %s: %s\n", wait.Key, wait.Reason, wait.Message)
	}
	for _, d := range p.Deviations {
		fmt.Fprintf(&b, "drifted  %s: %s\n", d.Key, d.Drift)
	}
	for _, key := range p.Ignored {
		fmt.Fprintf(&b, "ignored  %s: it exists and is not ours\n", key)
	}
	for _, key := range p.Retained {
		fmt.Fprintf(&b, "retained %s: it is not desired and stays\n", key)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "note     %s: %s\n", note.Key, note.Message)
	}
	if b.Len() == 0 {
		return "done\n"
	}
	return b.String()
}
