// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// record returns the inventory to store, ordered by key, the items that left it because their
// objects are gone, and whether the inventory must be durable before the steps: when it holds an
// object that is not recorded yet, or a phase that a step relies on. Everything new is recorded at
// once, so that an installation needs one write for its record, not one for each wave.
func (w *work) record() (items, gone []v1alpha1.InventoryItem, must bool) {
	items = make([]v1alpha1.InventoryItem, 0, len(w.units))
	must = w.recordFirst
	for _, u := range w.units {
		u.seal(w.in.Owner)
		if u.dropped && (w.deletionDone || !u.hookCompleted()) {
			if u.live.Existence == Absent && !u.isSharedType() {
				gone = append(gone, u.item)
			}
			continue
		}
		must = u.intend() || !u.recorded || must
		items = append(items, u.item)
	}
	return items, gone, must && len(w.steps) > 0
}

// intend records of which manifest an object is to be created that is not there, so that a process that
// does not know the answer need not write the object again. A second manifest is not recorded: the creation of
// the first may still arrive. It reports whether the record must be durable before that manifest is sent.
func (u *unit) intend() bool {
	switch {
	case u.desired == nil:
		return false
	case u.item.Digest != "":
		u.item.Intended = ""
		return false
	case !u.recorded && (u.live.Existence == Absent || u.live.Existence == NotFetched):
		u.item.Intended = u.desired.Digest
		return false
	}
	other := u.item.Intended != "" && u.item.Intended != u.desired.Digest
	if other {
		u.item.Intended = ""
	}
	return other
}

// Fold updates the record and the observations with the results of the steps of a plan. The
// inventory is the plan's; Fold changes it and live.
func Fold(inventory []v1alpha1.InventoryItem, live map[Key]Observation, results []Result, now metav1.Time) []v1alpha1.InventoryItem {
	// The serialised form has no fraction of a second. No timeout ends early.
	unread := metav1.NewTime(now.Add(time.Second - 1).Truncate(time.Second))
	now = metav1.NewTime(now.Truncate(time.Second))
	byKey := make(map[Key]Result, len(results))
	for _, r := range results {
		byKey[r.Step.Key] = r
		if r.Step.Verb == VerbDryRun && r.Err == nil {
			continue // the live object is as it was seen
		}
		live[r.Step.Key] = r.Observation
	}
	folded := make([]v1alpha1.InventoryItem, 0, len(inventory))
	for _, item := range inventory {
		r, touched := byKey[KeyOf(item)]
		switch {
		case r.ContentUnknown && r.Blocked != "" && r.Step.Guard.AllowsOrphan():
			item.UnreadSince, item.UnreadLast = cmp.Or(r.Step.ItemAfter.UnreadSince, &unread), cmp.Or(r.Step.ItemAfter.UnreadLast, &now)
			folded = append(folded, item)
		case !touched || r.Err != nil || r.Blocked != "" || r.Observation.Existence == Unknown:
			folded = append(folded, item)
		case (r.Orphaned || r.Step.Verb == VerbOrphan) && item.RunOn != "":
			item.UID, item.Seal = "", "" // it is no longer ours, but has run
			folded = append(folded, item)
		case r.Orphaned || r.Step.Verb == VerbOrphan:
			// It is no longer ours.
		case r.Step.Verb == VerbDelete || r.Step.Verb == VerbMark:
			resetContentUnknown(&item)
			folded = append(folded, item) // the accepted digest was the same
		default:
			folded = append(folded, itemAfterWrite(r, now))
		}
	}
	return folded
}

// itemAfterWrite is the record of an object after its write was answered.
func itemAfterWrite(r Result, now metav1.Time) v1alpha1.InventoryItem {
	item := r.Step.ItemAfter
	item.UID, item.Seal = r.Observation.UID, r.Observation.Seal
	item.ObservedHash, item.AppliedHash = r.Observation.ObservedHash, r.Observation.AppliedHash
	item.AppliedAt, item.Replicas, item.Altered = nil, r.Replicas, r.Observation.Altered
	if r.Observation.Status.Readiness == ReadinessUnknown || r.Step.Desired != nil && r.Step.Desired.Policies.Reapply > 0 {
		item.AppliedAt = &now
	}
	return item
}
