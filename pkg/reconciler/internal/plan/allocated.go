// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// An object that is no longer desired waits for the writes before it. One of them may be a creation
// that is refused as long as the old object holds a value that the new one asks for, such as a node
// port: both would wait for each other forever. Then the old object goes first.

// noteFailure notes that a write of the object has failed in this call.
func (w *work) noteFailure(u *unit) {
	u.blockedByFailure = true
	w.blockWrite(u)
	// An object of ours that is there is to be recreated, and the dry run was refused.
	if u.failure.AlreadyAllocated && !u.failure.Blocked && (u.live.Existence == Absent || u.isOurs()) {
		gk, order := u.key.GroupKind(), int(u.item.ApplyOrder)
		if first, known := w.allocated[gk]; !known || order < first {
			w.allocated[gk] = order
		}
	}
}

// anyBlockedByFailure reports whether one of the objects cannot be written because of a failure.
func anyBlockedByFailure(units []*unit) bool {
	return slices.ContainsFunc(units, func(u *unit) bool { return u.blockedByFailure })
}

// mayGoFirst reports whether an object that is no longer desired goes although
// writes before it are outstanding: a creation of its kind is refused because
// a value such as a port is already allocated, and nothing else changes that could free it.
func (w *work) mayGoFirst(u *unit) bool {
	order := int(u.item.ApplyOrder)
	first, refused := w.allocated[u.key.GroupKind()]
	return refused && first <= order && w.firstMoving > order && u.isExpendable() && u.mayRemove() && !w.willOrphan(u, ReasonRedundant)
}

// builtinGroups are the groups with kinds that may be expendable. An object of another group may
// stand for anything, such as a database.
var builtinGroups = map[string]bool{
	"": true, "autoscaling": true, "discovery.k8s.io": true, "gateway.networking.k8s.io": true, "networking.k8s.io": true, "policy": true,
}

// isExpendable reports whether the object may be deleted before its replacement exists. Objects
// that run or hold data are not expendable, nor are the prerequisites of running objects: those
// kinds have a place of their own in the order.
func (u *unit) isExpendable() bool {
	if _, placed := kinds[u.key.GroupKind()]; placed || u.instance || !builtinGroups[u.key.Group] {
		return false
	}
	switch u.key.Kind {
	case "Pod", "ReplicationController", "PersistentVolume":
		return u.key.Group != ""
	default:
		return true
	}
}

// DropResolvedFailures drops failures of creations from the input that the results may have
// resolved: of objects that asked for an allocated value, if a redundant object
// of their kind is gone; and of those for which a webhook could not be called, if a webhook was mended. It reports whether there were any. A caller that calls it once
// in a reconcile, and not again after it reported one, tries each of them twice at most.
func DropResolvedFailures(in Input, results []Result) bool {
	freed, mended := map[schema.GroupKind]bool{}, false
	for _, r := range results {
		mended = mended || r.Err == nil && r.Blocked == "" && r.Step.Verb != VerbDryRun && IsWebhookConfiguration(r.Step.Key.GroupKind())
		gone := r.Err == nil && r.Blocked == "" && r.Step.Verb == VerbDelete && r.Observation.Existence == Absent
		if gone && r.Step.Reason == ReasonRedundant {
			freed[r.Step.Key.GroupKind()] = true
		}
	}
	retried := false
	for key, failure := range in.Failed {
		if (failure.AlreadyAllocated && freed[key.GroupKind()] || failure.Webhook != "" && mended) && in.Live[key].known() {
			delete(in.Failed, key)
			retried = true
		}
	}
	return retried
}
