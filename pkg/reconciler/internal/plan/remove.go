// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// prune removes what is recorded but no longer desired. An object waits until
// the writes of its own and the earlier apply waves went through, so that what
// takes its place is there; it does not wait for readiness. It goes
// first if it holds what a failed creation asks for.
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
	w.remove(redundant, ReasonRedundant)
}

// keepLeaving records of an object that is orphaned because the manifests
// dropped it that this holds whatever comes: the component may be deleted before
// it is done. Once our label and annotation are gone, nothing else distinguishes the object from one
// that lost them.
func (w *work) keepLeaving(u *unit) {
	if u.item.DeletePolicy == v1alpha1.DeletePolicyOrphanOnApply && u.live.Existence != Absent {
		u.item.DeletePolicy = v1alpha1.DeletePolicyOrphan
		w.ahead = true
	}
}

// early reports whether the writes that come before the removal are outstanding.
func (w *work) early(u *unit, because Reason) bool {
	return because == ReasonRedundant && w.unwritten <= int(u.item.ApplyOrder) && !w.inTheWay(u)
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
	case !u.live.DeletionTimestamp.IsZero():
		w.wait(u, WaitGone, terminating(u.live))
	default:
		w.tellInTheWay(u, because)
		s := w.guarded(u.step(VerbDelete, stageRemoval, because), u)
		if u.item.Keeps {
			s.Guard = s.Guard.orRelease()
		}
		s.ItemAfter.UnreadSince, s.ItemAfter.UnreadLast = w.unread(u)
		if until := w.unreadUntil(u); s.Guard == GuardEmptyElseOrphan && !until.IsZero() && !w.in.Now.Before(until) {
			s.Guard = GuardKnownEmptyElseOrphan
		}
		w.step(s)
	}
}

// waitRemoval waits because the removal failed or was blocked in this reconcile.
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

// A server may serve one object in several groups, such as Event in the core group and
// in events.k8s.io. When the manifests name another group, the recorded object and the
// desired one have different keys and one uid.

// twins returns the desired objects by their keys without the group.
func (w *work) twins() map[Key][]*unit {
	twins := map[Key][]*unit{}
	for _, u := range w.units {
		if u.desired != nil {
			twins[u.key.anyGroup()] = append(twins[u.key.anyGroup()], u)
		}
	}
	return twins
}

// moved reports whether the very object is desired in another group.
func (u *unit) moved() bool {
	return slices.ContainsFunc(u.twins, func(twin *unit) bool {
		uid := twin.live.UID
		return twin.live.Existence == Present && uid != "" && (uid == u.item.UID || uid == u.live.UID)
	})
}

// unknownTwin returns a desired object that may be the very object, in another group.
func (u *unit) unknownTwin() *unit {
	if i := slices.IndexFunc(u.twins, func(twin *unit) bool { return !twin.live.known() }); i >= 0 {
		return u.twins[i]
	}
	return nil
}

// waitTwin lets the removal wait until it is known that it is about another object.
func (w *work) waitTwin(u *unit) {
	twin := u.unknownTwin().key
	w.wait(u, WaitOrder, fmt.Sprintf("is removed when it is known that %s in the group %q is another object", twin, twin.Group))
}
