// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// What the driver knows of objects without reading them, as the runtime does: from
// the watch of everything that has the label of the reconciler, and from the
// record, which says what was never created.

// labelled is the object as it is in the watch, if it is.
func (w *world) labelled(key Key) Observation {
	if o := w.objects[key]; o != nil && o.ownership.OwnerID != "" {
		return o.observation(false)
	}
	return Observation{}
}

// delay lets the watch deliver no events of an object from now on.
func (w *world) delay(key Key) { w.late[key] = w.labelled(key) }

// learn records an answer about an object, which is newer than what the watch reported.
func (w *world) learn(key Key) {
	if _, late := w.late[key]; late {
		w.delay(key)
	}
}

// watched is what the watch reports.
func (w *world) watched(key Key) Observation {
	if reported, late := w.late[key]; late {
		return reported
	}
	return w.labelled(key)
}

// look returns what is known of an object at the start of a reconcile, and reads it only
// if that is not enough.
func (d *driver) look(key Key, desired *Desired, item *v1alpha1.InventoryItem) Observation {
	if !d.world.serves(key.GroupKind()) {
		return d.world.observe(key, desired != nil)
	}
	if reported := d.world.watched(key); d.watches && reported.Existence == Present {
		if theOwner.Owns(reported.Ownership) && (desired == nil || !asksForAccepted(desired, item, reported)) {
			return reported
		}
	} else if desired != nil && d.assumesAbsence && unconfirmed(item) && desired.Policies.Adoption != v1alpha1.AdoptionPolicyIgnore {
		return Observation{Existence: NotFetched}
	}
	found := d.read(key, desired != nil)
	if found.Existence == Absent && item != nil {
		found.Finish = d.world.left[item.UID]
	}
	return found
}

// read asks for an object.
func (d *driver) read(key Key, desired bool) Observation {
	found := d.world.observe(key, desired)
	if found.Existence == Present {
		d.world.learn(key)
	}
	return found
}

// asksForAccepted reports whether the values at the paths of the manifest matter.
func asksForAccepted(desired *Desired, item *v1alpha1.InventoryItem, reported Observation) bool {
	if item == nil || item.Digest == "" || item.UID != reported.UID {
		repeated := []v1alpha1.ReconcilePolicy{v1alpha1.ReconcilePolicyOnObjectChange, v1alpha1.ReconcilePolicyOnObjectOrComponentChange}
		return !slices.Contains(repeated, desired.Policies.Reconcile)
	}
	return item.ObservedHash != reported.ObservedHash
}

// unconfirmed reports whether no write of the object was ever answered.
func unconfirmed(item *v1alpha1.InventoryItem) bool {
	return item == nil || item.UID == "" && item.Digest == "" && item.Phase == vocabulary.PhaseApplied
}

// mayAssumeAbsence reports whether creations may find out by themselves that objects exist.
func mayAssumeAbsence(in Input, items map[Key]*v1alpha1.InventoryItem) bool {
	return in.Cause == Applying && !slices.ContainsFunc(in.Desired, func(d Desired) bool {
		return d.Policies.Adoption == v1alpha1.AdoptionPolicyNever && unconfirmed(items[d.Key])
	})
}

// maxLooks is how often an object is looked at again in one reconcile because it was not
// as it was seen.
const maxLooks = 3

// again reads the object of a step that was refused, if the refusal says that it,
// or its namespace, is not as it was seen, or was not looked for. It reports whether
// that is all; otherwise the step has failed.
func (d *driver) again(in Input, r Result, blind bool) bool {
	switch {
	case r.Err == errConflict || r.Err == errExists:
		d.looks[r.Step.Key]++
		return d.looks[r.Step.Key] <= maxLooks || blind
	case blind:
		return r.Err != errLost
	case r.Err == errNoNamespace || r.Err == errTerminating:
		namespace := namespaceKey(r.Step.Key.Namespace)
		in.Live[namespace] = d.read(namespace, false)
		d.looks[r.Step.Key]++
		return d.looks[r.Step.Key] <= maxLooks
	default:
		return false
	}
}
