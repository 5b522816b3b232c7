// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// maxKept is of how many instances a type's record says that they were left behind.
// Each takes less room than its own record did.
const maxKept = 1000

// What is left behind would go with its namespace, and with its type. So these
// are left behind, too, as long as it is there: otherwise nobody could ever delete
// them, because what was left behind counts as foreign from then on.

// keepHolders notes on the namespaces and types of the objects which are left
// behind that they are not to be deleted with them. That is durable before the
// marks of the first of them are taken off: afterwards nothing tells any more that
// it has been ours.
func (w *work) keepHolders(units []*unit, because Reason) {
	for _, holder := range w.units {
		mayHold := holder.key.isNamespace() || len(holder.item.Defines) > 0
		stays := holder.desired == nil && w.leftBehind(holder, because)
		if !mayHold || stays || holder.live.Existence == Absent {
			continue
		}
		for _, u := range units {
			if holder.holds(u) && w.staysBehind(u, because) && holder.keep(u, w.handsOver(u, because)) {
				w.ahead = true
			}
		}
	}
}

// keep notes that something stays behind in the namespace or the type, and tells
// whether that is news. An instance that goes to somebody else is one of theirs: it
// blocks the deletion of its type as any other does.
func (u *unit) keep(left *unit, handedOver bool) (news bool) {
	news, u.item.Keeps = !u.item.Keeps, true
	if len(u.item.Defines) == 0 || handedOver || left.letGo() || slices.Contains(u.item.Kept, left.live.UID) {
		return news
	}
	// A copy: the input must not change.
	kept := append(slices.Clone(u.item.Kept), left.live.UID)
	u.item.Kept = kept[max(len(kept)-maxKept, 0):]
	return true
}

// staysBehind reports whether an object that is there leaves the record and not the cluster.
func (w *work) staysBehind(u *unit, because Reason) bool {
	return u.live.Existence == Present && u.live.Deleting.IsZero() && u.mayRemove() && w.leftBehind(u, because)
}

// leftBehind reports whether an object that is ours is left behind when it is removed.
func (w *work) leftBehind(u *unit, because Reason) bool {
	return orphaned(u.item.DeletePolicy, because) || u.letGo() || w.protects(u.key) || w.handsOver(u, because)
}

// holds reports whether the object is the namespace of the other, or defines its type.
func (u *unit) holds(other *unit) bool {
	return other.key.Namespace != "" && u.key == namespaceKey(other.key.Namespace) || u.brings(other)
}

// orRelease is the guard that leaves behind what it must not delete.
func (g Guard) orRelease() Guard {
	switch g {
	case GuardNoInstances:
		return GuardNoInstancesOrRelease
	case GuardEmpty:
		return GuardEmptyOrRelease
	default:
		return g
	}
}

// Releases reports whether what must not be deleted is left behind, without our marks.
func (g Guard) Releases() bool {
	return g == GuardEmptyOrRelease || g == GuardKnownEmptyOrRelease || g == GuardNoInstancesOrRelease
}

// release drops an object that is not ours, or not any more, from the record.
func (w *work) release(u *unit) {
	switch {
	case u.relation == earlier:
		w.note(u.key, "released: it belongs to %s and was never taken over", u.owner)
	case u.item.UID == "" || u.item.Phase == v1alpha1.PhaseReleased:
		// It was never ours, or its release was told before.
	case u.relation == foreign:
		w.note(u.key, "released: it belongs to %s", u.owner)
	case u.item.UID == u.live.UID:
		w.note(u.key, "released: it no longer bears the ownership marks of this component")
	default:
		w.note(u.key, "released: another client recreated it")
	}
	u.drop()
}

// leavesMarks reports whether the object has gone to somebody else, whose mark is
// on it next to ours. Left there, ours would tell forever that it is ours, too.
func (w *work) leavesMarks(u *unit) bool {
	marks, me := u.live.Marks, w.in.Owner
	mine := marks.Ref == me.Ref && (marks.OwnerID == me.ID || marks.OwnerID == "") || marks.Ref == (OwnerRef{}) && marks.OwnerID == me.ID
	return u.relation == foreign && mine && u.live.Deleting.IsZero()
}

// disown releases such an object, by stripping our marks.
func (w *work) disown(u *unit, because Reason) {
	if u.failure != nil {
		w.wait(u, failureReason(*u.failure), u.failure.Message)
		return
	}
	if u.item.Phase != v1alpha1.PhaseReleased {
		w.note(u.key, "released: it belongs to %s", u.owner)
	}
	w.step(u.step(VerbOrphan, stageRemoval, because))
}

// orphan strips our marks; an object without them has nothing to lose.
func (w *work) orphan(u *unit, because Reason) {
	if u.relation == stripped && u.live.Marks.Ref == (OwnerRef{}) {
		u.drop()
		return
	}
	if w.handsOver(u, because) {
		w.note(u.key, "handed over to %s, which waits for it", w.in.Claimed[u.key])
	}
	if w.handsOver(u, because) && !u.letGo() {
		// Durable before the marks are gone: otherwise, after a crash, a
		// deletion of the component would take it for an object that lost them.
		u.item.Phase, u.item.UID = v1alpha1.PhaseReleased, u.live.UID
		w.ahead = true
	}
	w.step(u.step(VerbOrphan, stageRemoval, because))
}

// handsOver reports whether an object that is not wanted any more is left to
// somebody who waits for it. When all goes, it goes with the rest.
func (w *work) handsOver(u *unit, because Reason) bool {
	return because == BecauseRedundant && w.in.Claimed[u.key] != "" && u.live.Deleting.IsZero()
}

// letGo reports whether it is recorded that the live object is left to others.
func (u *unit) letGo() bool {
	return u.item.Phase == v1alpha1.PhaseReleased && u.item.UID == u.live.UID
}

func orphaned(p v1alpha1.DeletePolicy, because Reason) bool {
	switch p {
	case v1alpha1.DeletePolicyOrphan:
		return true
	case v1alpha1.DeletePolicyOrphanOnApply:
		return because == BecauseRedundant
	case v1alpha1.DeletePolicyOrphanOnDelete:
		return because == BecauseDeleting
	default:
		return false
	}
}

// protects reports whether the object is one that is never deleted: a namespace of
// the cluster's own, the one that the owner itself lives in, or what the owner
// needs. It is released, even if a manifest brings it.
func (w *work) protects(key Key) bool {
	if w.in.Protected[key] {
		return true
	}
	if !key.isNamespace() {
		return false
	}
	return key.Name == "default" || key.Name == w.in.Owner.Ref.Namespace || strings.HasPrefix(key.Name, "kube-")
}
