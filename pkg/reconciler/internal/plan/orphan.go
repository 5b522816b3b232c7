// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// maxKeptUIDs is how many orphaned instances the record of a type lists. Each needs less space than
// its own record did.
//
// Unit: instances
// Limit: the recorded orphaned instances of one type; older ones block the deletion of the type.
const maxKeptUIDs = 1000

// An orphaned object would be deleted with its namespace, and with its type. So these
// are orphaned, too, as long as it exists: otherwise they could never be
// deleted, because an orphaned object counts as unowned from then on.

// keepContainers records of the namespaces and types of orphaned objects that they are
// not to be deleted. That is durable before the label and annotation of the first
// orphan are removed: afterwards nothing shows any more that it has been ours.
func (w *work) keepContainers(units []*unit, reason Reason) {
	for _, container := range w.units {
		mayContain := isNamespace(container.key) || len(container.item.Defines) > 0
		stays := container.desired == nil && w.willOrphan(container, reason)
		if !mayContain || stays || container.live.Existence == Absent {
			continue
		}
		for _, u := range units {
			if container.contains(u) && w.isOrphaned(u, reason) && container.keepFor(u, w.handsOver(u, reason)) {
				w.recordFirst = true
			}
		}
	}
}

// keepFor records that an orphan stays in the namespace or the type, and reports
// whether that was not recorded before. An instance that goes to another owner
// blocks the deletion of its type as any other does.
func (u *unit) keepFor(orphan *unit, handedOver bool) (changed bool) {
	changed, u.item.Keeps = !u.item.Keeps, true
	if len(u.item.Defines) == 0 || handedOver || orphan.isReleased() || slices.Contains(u.item.Kept, orphan.live.UID) {
		return changed
	}
	// A copy: the input must not change.
	kept := append(slices.Clone(u.item.Kept), orphan.live.UID)
	u.item.Kept = kept[max(len(kept)-maxKeptUIDs, 0):]
	return true
}

// isOrphaned reports whether an object that exists is removed from the record and not deleted.
func (w *work) isOrphaned(u *unit, reason Reason) bool {
	return u.live.Existence == Present && u.live.DeletionTimestamp.IsZero() && u.mayRemove() && w.willOrphan(u, reason)
}

// willOrphan reports whether an object of ours is orphaned, not deleted.
func (w *work) willOrphan(u *unit, reason Reason) bool {
	return orphans(u.item.DeletePolicy, reason) || u.isReleased() || w.isProtected(u.key) || w.handsOver(u, reason)
}

// contains reports whether the object is the namespace of the other, or defines its type.
func (u *unit) contains(other *unit) bool {
	return other.key.Namespace != "" && u.key == namespaceKey(other.key.Namespace) || u.definesTypeOf(other)
}

// orOrphan returns the guard that orphans an object if it must not delete it.
func (g Guard) orOrphan() Guard {
	switch g {
	case GuardNoInstances:
		return GuardNoInstancesElseOrphan
	case GuardEmpty:
		return GuardEmptyElseOrphan
	default:
		return g
	}
}

// AllowsOrphan reports whether the guard orphans an object that it must not delete.
func (g Guard) AllowsOrphan() bool {
	return g == GuardEmptyElseOrphan || g == GuardKnownEmptyElseOrphan || g == GuardNoInstancesElseOrphan
}

// dropUnowned drops an object that is not ours, or not any more, from the record.
func (w *work) dropUnowned(u *unit) {
	switch {
	case u.relation == earlierIncarnation:
		w.note(u.key, report.NoteReleased, "released: it belongs to %s and was never adopted", u.otherOwner)
	case u.item.UID == "" || u.item.Phase == vocabulary.PhaseReleased:
		// It was never ours, or its release was reported before.
	case u.relation == ownedByOther:
		w.note(u.key, report.NoteReleased, "released: it belongs to %s", u.otherOwner)
	case u.item.UID == u.live.UID:
		w.note(u.key, report.NoteReleased, "released: it no longer has the label and annotation of this component")
	default:
		w.note(u.key, report.NoteReleased, "released: another client recreated it")
	}
	u.drop()
}

// ownsBesidesOthers reports whether another owner has the object, and its label or annotation is
// there beside ours. Ours must go: otherwise the object would have two owners for ever.
func (w *work) ownsBesidesOthers(u *unit) bool {
	ownership, me := u.live.Ownership, w.in.Owner
	mine := ownership.Ref == me.Ref && (ownership.OwnerID == me.ID || ownership.OwnerID == "") || ownership.Ref == (OwnerRef{}) && ownership.OwnerID == me.ID
	return u.relation == ownedByOther && mine && u.live.DeletionTimestamp.IsZero()
}

func (w *work) removeOwnership(u *unit, reason Reason) {
	if u.failure != nil {
		w.wait(u, failureReason(*u.failure), u.failure.Message)
		return
	}
	if u.item.Phase != vocabulary.PhaseReleased {
		w.note(u.key, report.NoteReleased, "released: it belongs to %s", u.otherOwner)
	}
	w.orphanStep(u, reason)
}

// orphan removes our label and annotation; an object without them is only dropped from the inventory.
func (w *work) orphan(u *unit, reason Reason) {
	if u.relation == labelLost && u.live.Ownership.Ref == (OwnerRef{}) || u.isLeftOver() {
		u.drop()
		return
	}
	if w.handsOver(u, reason) {
		w.note(u.key, "", "handed over to %s, which waits for it", w.in.AwaitedBy[u.key])
	}
	if w.handsOver(u, reason) && !u.isReleased() {
		// Durable before the label and annotation are gone: otherwise, after a crash, a
		// deletion of the component would treat it as an object that lost them.
		u.item.Phase, u.item.UID = vocabulary.PhaseReleased, u.live.UID
		w.recordFirst = true
	}
	w.orphanStep(u, reason)
}

func (w *work) orphanStep(u *unit, reason Reason) {
	s := u.step(VerbOrphan, stageRemoval, reason)
	if s.HasOwnerReferences {
		for _, other := range w.units {
			if other.removing && other.item.UID != "" && !w.willOrphan(other, reason) {
				s.Removes = append(s.Removes, other.item.UID)
			}
		}
	}
	w.step(s)
}

// goesFirst reports whether an object is orphaned before anything is removed: it has ownerReferences, and the
// garbage collector deletes it when all objects are gone that it refers to. A namespace refers to no other dependent.
func (w *work) goesFirst(u *unit, reason Reason) bool {
	return u.live.HasOwnerReferences && !isNamespace(u.key) && w.isOrphaned(u, reason)
}

// handsOver reports whether an object that is no longer desired is handed over to
// another owner that waits for it. In a deletion of the component it is deleted with the rest.
func (w *work) handsOver(u *unit, reason Reason) bool {
	return reason == ReasonRedundant && w.in.AwaitedBy[u.key] != "" && u.live.DeletionTimestamp.IsZero()
}

// isReleased reports whether it is recorded that the live object belongs to other owners.
func (u *unit) isReleased() bool {
	return u.item.Phase == vocabulary.PhaseReleased && u.item.UID == u.live.UID
}

// isReleasedByMistake reports whether the record releases an object that no other owner has or
// waits for: an operator of another name that shared the record may have written that. An object
// that is not desired may have been handed over, right before a crash. An object that we hand over
// has the digest of a manifest under our key, and no seal; another operator hashed with another
// key.
func (u *unit) isReleasedByMistake(in Input) bool {
	ownership := u.live.Ownership
	return u.isReleased() && ownership.OwnerID == in.Owner.ID && ownership.Ref == in.Owner.Ref && len(ownership.OtherOwners) == 0 &&
		ownership.Controller.UID == "" && in.AwaitedBy[u.key] == "" && (u.desired != nil || u.isRekeyed() || isSealed(u.item, u.live))
}

func orphans(p v1alpha1.DeletePolicy, reason Reason) bool {
	if reason == ReasonDeleting {
		return policy.OrphansOnDelete(p)
	}
	return policy.OrphansOnApply(p)
}

// isProtected reports whether the object is never deleted: a namespace of the cluster's own, the
// owner's namespace, or a prerequisite of the owner. It is orphaned, even if a manifest contains
// it.
func (w *work) isProtected(key Key) bool {
	if w.in.Protected[key] {
		return true
	}
	if !isNamespace(key) {
		return false
	}
	return key.Name == "default" || key.Name == w.in.Owner.Ref.Namespace || strings.HasPrefix(key.Name, "kube-")
}
