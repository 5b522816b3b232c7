// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// prune removes what is recorded but no longer wanted. An object waits until
// the writes of its own and the earlier apply waves went through, so that what
// takes its place is there; it does not wait for anybody's readiness. It goes
// first if it is in the way of what failed.
func (w *work) prune() {
	var redundant []*unit
	var twins map[Key][]*unit // at rest none is asked for
	for _, u := range w.units {
		if u.desired == nil && !u.dropped {
			if twins == nil {
				twins = w.twins()
			}
			if u.twins = twins[u.key.anyGroup()]; u.moved() {
				u.drop()
				continue
			}
			w.keepLeaving(u)
			redundant = append(redundant, u)
		}
	}
	w.findFormerNeeds()
	w.remove(redundant, BecauseRedundant)
}

// keepLeaving records of an object that is left behind because the manifests
// dropped it, that this holds whatever comes: the component may be deleted before
// it is done. Once the marks are gone, nothing else tells the object from one
// that lost them.
func (w *work) keepLeaving(u *unit) {
	if u.item.DeletePolicy == v1alpha1.DeletePolicyOrphanOnApply && u.live.Existence != Absent {
		u.item.DeletePolicy = v1alpha1.DeletePolicyOrphan
		w.ahead = true
	}
}

// early tells whether the writes that come before the removal are outstanding.
func (w *work) early(u *unit, because Reason) bool {
	return because == BecauseRedundant && w.unwritten <= int(u.item.ApplyOrder) && !w.inTheWay(u)
}

// remove deletes objects, wave by wave and stage by stage; a stage begins when
// everything before it is gone.
func (w *work) remove(units []*unit, because Reason) {
	w.keepHolders(units, because)
	ordered := w.arrange(units)
	blocked := false
	for len(ordered) > 0 {
		stage := takeStage(&ordered)
		for _, u := range stage {
			if blocked {
				w.holdRemoval(u, "is removed after others are gone")
			} else {
				w.removeInOrder(u, because)
			}
		}
		blocked = blocked || slices.ContainsFunc(stage, func(u *unit) bool { return !u.dropped })
	}
	w.forgetVisits()
}

// removeInOrder removes the object after those of its stage that need it.
func (w *work) removeInOrder(u *unit, because Reason) {
	if u.visited {
		return
	}
	u.visited = true
	for _, other := range u.neededBy {
		if other.leaves && other.leaving == u.leaving && other.departure == u.departure {
			w.removeInOrder(other, because)
		}
	}
	keeper := u.keeper()
	switch {
	case keeper != nil:
		w.holdRemoval(u, "is removed after "+keeper.key.String()+", which needs it")
	case w.early(u, because):
		w.holdRemoval(u, "is removed after the others are written")
	default:
		w.removeOne(u, because)
	}
}

// takeStage cuts the leading run of equal wave and stage.
func takeStage(ordered *[]*unit) []*unit {
	first, n := (*ordered)[0], 1
	for n < len(*ordered) {
		u := (*ordered)[n]
		if u.leaving != first.leaving || u.departure != first.departure {
			break
		}
		n++
	}
	stage := (*ordered)[:n]
	*ordered = (*ordered)[n:]
	return stage
}

// holdRemoval lets an object wait for others.
func (w *work) holdRemoval(u *unit, message string) {
	if u.live.Existence == Absent {
		u.drop()
		return
	}
	if u.failure == nil {
		beRead(&u.item) // its content is not read meanwhile, so nothing lasts
	}
	w.wait(u, WaitOrder, message)
}

func (w *work) removeOne(u *unit, because Reason) {
	switch {
	case u.live.Existence == Absent || u.unkept() && !u.live.known():
		u.drop()
	case !u.live.known():
		w.waitUnread(u)
	case u.unknownTwin() != nil:
		w.waitTwin(u)
	case w.leavesMarks(u):
		w.disown(u, because)
	case !u.mayRemove():
		w.release(u)
	case u.failure != nil:
		w.waitRemoval(u)
	case w.leftBehind(u, because):
		w.orphan(u, because)
	case !u.live.Deleting.IsZero():
		w.wait(u, WaitGone, terminating(u.live))
	default:
		w.tellInTheWay(u, because)
		s := w.guarded(u.step(VerbDelete, stageRemoval, because), u)
		if u.item.Keeps {
			s.Guard = s.Guard.orRelease()
		}
		s.Then.UnreadSince, s.Then.UnreadLast = w.unread(u)
		if until := w.unreadUntil(u); s.Guard == GuardEmptyOrRelease && !until.IsZero() && !w.in.Now.Before(until) {
			s.Guard = GuardKnownEmptyOrRelease
		}
		w.step(s)
	}
}

// waitRemoval waits because the removal failed or was blocked in this pass.
func (w *work) waitRemoval(u *unit) {
	wait := Wait{Key: u.key, Reason: failureReason(*u.failure), Message: u.failure.Message, Until: w.unreadUntil(u)}
	if !wait.Until.IsZero() {
		wait.Message += "; if that lasts, it is left behind at " + wait.Until.UTC().Format(time.RFC3339)
		if again := w.in.Now.Add(w.unreadGap() / 2); again.Before(wait.Until) {
			wait.Until = again // a try must come before the measure begins anew
		}
	}
	w.waiting = append(w.waiting, wait)
}

// drop removes an object from the record.
func (u *unit) drop() {
	u.dropped, u.settled = true, true
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

// leavesMarks tells whether the object has gone to somebody else, whose mark is
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

// handsOver tells whether an object that is not wanted any more is left to
// somebody who waits for it. When all goes, it goes with the rest.
func (w *work) handsOver(u *unit, because Reason) bool {
	return because == BecauseRedundant && w.in.Claimed[u.key] != "" && u.live.Deleting.IsZero()
}

// letGo tells whether it is recorded that the live object is left to others.
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

// protects tells whether the object is one that is never deleted: a namespace of
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
