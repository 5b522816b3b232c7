// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// relation is whose a live object is.
type relation int

const (
	// unowned: nobody has marked the object.
	unowned relation = iota
	// ours: the object bears our marks.
	ours
	// stripped: the object is the recorded one and we wrote it, but our marks are gone.
	stripped
	// earlier: the object bears the marks of an earlier incarnation of us.
	earlier
	// foreign: the object bears the marks of somebody else.
	foreign
)

// relate decides whose a live object is, and names the owner if it is not us.
// The inventory alone is no evidence: the object itself must show that it is ours.
func relate(me Owner, item v1alpha1.InventoryItem, adoption v1alpha1.AdoptionPolicy, live Observation) (relation, string) {
	marks := live.Marks
	mine := marks.OwnerID == me.ID && (marks.Ref == (OwnerRef{}) || marks.Ref.SameOwner(me.Ref))
	// Under the policy Always an object that we took over may still bear the marks
	// of its last owner: they go with a request of their own, and may come back.
	if len(marks.Others) > 0 && !(mine && adoption == v1alpha1.AdoptionPolicyAlways) {
		return foreign, strings.Join(marks.Others, " and ")
	}
	switch {
	case mine && (marks.Ref == (OwnerRef{}) || marks.Ref.UID == me.Ref.UID):
		return ours, ""
	case mine:
		return earlier, "an earlier " + me.Ref.Title()
	case marks.OwnerID != "" && marks.Ref.SameOwner(me.Ref):
		// The same owner in another cluster, as after a restore from a backup.
		return earlier, "an earlier " + me.Ref.Title()
	case marks.OwnerID != "":
		return foreign, titleOf(marks)
	case marks.Ref != (OwnerRef{}) && !marks.Ref.SameOwner(me.Ref):
		return foreign, marks.Ref.Title()
	case item.UID != "" && item.UID == live.UID && (marks.Written || marks.Ref == me.Ref):
		return stripped, ""
	default:
		return unowned, ""
	}
}

func titleOf(marks Marks) string {
	if marks.Ref == (OwnerRef{}) {
		return "the owner with id " + marks.OwnerID
	}
	return marks.Ref.Title()
}

// Owns tells whether the marks are the owner's own and nobody else's.
func (o Owner) Owns(marks Marks) bool {
	found, _ := relate(o, v1alpha1.InventoryItem{}, v1alpha1.AdoptionPolicyIfUnowned, Observation{Existence: Present, Marks: marks})
	return found == ours
}

// isOurs tells whether the object may be changed and deleted without asking
// for an adoption.
func (u *unit) isOurs() bool { return u.relation == ours || u.relation == stripped }

// mayRemove tells whether an object that is not wanted any more may be
// deleted. What an earlier incarnation of us left must be the very object that is
// recorded; otherwise we never took it over, perhaps because we must not.
func (u *unit) mayRemove() bool {
	return u.isOurs() || u.relation == earlier && u.item.UID == u.live.UID
}

// mayAdopt tells whether the adoption policy allows to take the live object.
func (u *unit) mayAdopt() bool {
	switch u.desired.Policies.Adoption {
	case v1alpha1.AdoptionPolicyAlways:
		return true
	case v1alpha1.AdoptionPolicyNever:
		return false
	case v1alpha1.AdoptionPolicyIgnore:
		return u.relation == earlier // an earlier incarnation of the owner has created it
	default:
		return u.relation == unowned || u.relation == earlier
	}
}
