// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// prune removes what is recorded but no longer wanted. An object waits until
// the writes of its own and the earlier apply waves went through, so that what
// takes its place is there; it does not wait for anybody's readiness.
func (w *work) prune() {
	var redundant []*unit
	for _, u := range w.units {
		if u.desired != nil {
			continue
		}
		if w.unwritten <= int(u.item.ApplyOrder) {
			if u.live.Existence == Absent {
				u.dropped = true
				continue
			}
			w.wait(u, WaitOrder, "is removed after the others are written")
			continue
		}
		redundant = append(redundant, u)
	}
	w.remove(redundant, BecauseRedundant)
}

// remove deletes objects, wave by wave and stage by stage; a stage begins when
// everything before it is gone.
func (w *work) remove(units []*unit, because Reason) {
	ordered := slices.Clone(units)
	slices.SortStableFunc(ordered, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.item.DeleteOrder, b.item.DeleteOrder), cmp.Compare(removeStage(a), removeStage(b)))
	})
	inhabited := w.inhabited()
	blocked := false
	for len(ordered) > 0 {
		stage := takeStage(&ordered)
		for _, u := range stage {
			if blocked {
				w.holdRemoval(u)
				continue
			}
			w.removeOne(u, because, inhabited)
		}
		if slices.ContainsFunc(stage, func(u *unit) bool { return !u.dropped && !u.settled }) {
			blocked = true
		}
	}
}

// takeStage cuts the leading run of equal wave and stage.
func takeStage(ordered *[]*unit) []*unit {
	first, n := (*ordered)[0], 1
	for n < len(*ordered) {
		u := (*ordered)[n]
		if u.item.DeleteOrder != first.item.DeleteOrder || removeStage(u) != removeStage(first) {
			break
		}
		n++
	}
	stage := (*ordered)[:n]
	*ordered = (*ordered)[n:]
	return stage
}

// holdRemoval lets an object wait for others to be gone.
func (w *work) holdRemoval(u *unit) {
	if u.live.Existence == Absent {
		u.dropped, u.settled = true, true
		return
	}
	w.wait(u, WaitOrder, "is removed after others are gone")
}

func (w *work) removeOne(u *unit, because Reason, inhabited map[string]int) {
	switch {
	case u.live.Existence == Absent:
		u.dropped, u.settled = true, true
	case u.live.Existence == Unknown:
		w.wait(u, WaitUnknown, why(u.live))
	case !u.isOurs() && u.relation != earlier:
		w.release(u)
	case u.failure != nil:
		w.wait(u, failureReason(*u.failure), u.failure.Message)
	case orphaned(u.item.DeletePolicy, because):
		w.orphan(u, because)
	case !u.live.Deleting.IsZero():
		w.wait(u, WaitGone, terminating(u.live))
	case u.isNamespace() && inhabited[u.key.Name] > 0:
		w.wait(u, WaitOrder, "is removed when nothing of ours lives in it")
	default:
		s := u.step(VerbDelete, stageRemoval, because)
		s.Guard = guardOf(u)
		w.step(s)
	}
}

// release drops an object that is not ours any more from the record.
func (w *work) release(u *unit) {
	if u.item.UID != "" {
		if u.relation == foreign {
			w.note(u.key, "released: it belongs to %s", u.owner)
		} else {
			w.note(u.key, "released: somebody else recreated it")
		}
	}
	u.dropped, u.settled = true, true
}

// orphan strips our marks; an object without them has nothing to lose.
func (w *work) orphan(u *unit, because Reason) {
	if u.relation == stripped && u.live.Marks.Ref == (OwnerRef{}) {
		u.dropped, u.settled = true, true
		return
	}
	w.step(u.step(VerbOrphan, stageRemoval, because))
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

// inhabited counts, by namespace, the objects of ours that live in it.
func (w *work) inhabited() map[string]int {
	count := map[string]int{}
	for _, u := range w.units {
		gone := u.dropped || u.live.Existence == Absent && u.desired == nil
		if u.key.Namespace != "" && !gone {
			count[u.key.Namespace]++
		}
	}
	return count
}

func (u *unit) isNamespace() bool { return u.key.Group == "" && u.key.Kind == "Namespace" }
