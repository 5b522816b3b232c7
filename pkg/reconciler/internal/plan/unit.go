// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// unit is everything known about one object.
type unit struct {
	key     Key
	desired *Desired // nil if the object is not desired
	// item is the record to store; it starts as the recorded item.
	item     v1alpha1.InventoryItem
	recorded bool
	live     Observation
	relation relation
	// otherOwner names the owner of the object, if it is not us.
	otherOwner string
	failure    *Failure
	// instance is set if the object is an instance of a managed type.
	instance bool
	// settled: nothing is to be done and nothing is waited for.
	settled bool
	// conflicting: another client changes the object again and again.
	conflicting bool
	// writeBlocked: the object is to be written, but cannot be now.
	writeBlocked bool
	// waitsForOthers: other objects come first.
	waitsForOthers bool
	// blockedByFailure: it cannot be written, because its own last write failed or the write of an
	// object before it.
	blockedByFailure bool
	// shared: it is a namespace that was created for another component, and that desired objects live in.
	shared bool
	// mendsWebhook: the object goes first, because the server cannot call a webhook of it and refuses other writes for that.
	mendsWebhook bool
	// becameHook: the object runs before or after a deletion, but is on record
	// as an ordinary one.
	becameHook bool
	// dropped: the object is removed from the record.
	dropped bool
	// needs are other objects that must be there as long as this one: when applying, the objects
	// that must be settled before; when removing, the objects that must not go before.
	needs []*unit
	// removing: the object is to be removed, in removalWave and in
	// its removalStage.
	removing     bool
	removalWave  int16
	removalStage int
	// neededBy are the units that need this one and must not be left without it.
	neededBy []*unit
	// equivalents are the desired objects of the same kind and name in other groups.
	equivalents []*unit
	// visited is set for units that the walk under way has met, visiting for the units on its path.
	visited, visiting bool
}

// setDesired makes the unit a desired one and brings the descriptive part of its
// record up to date.
func (u *unit) setDesired(d *Desired) {
	u.desired = d
	if u.becameHook = u.recorded && u.runsOnDelete() && u.item.RunOn == ""; u.becameHook {
		return // it is an ordinary object until it is gone
	}
	u.item.Digest = carryRevision(u.item.Digest, d.Digest)
	u.item.RunOn = string(d.Policies.RunOn)
	u.item.Group, u.item.Version, u.item.Kind = d.Key.Group, d.Version, d.Key.Kind
	u.item.Namespace, u.item.Name = d.Key.Namespace, d.Key.Name
	u.item.Origin = vocabulary.OriginManifest
	u.item.ApplyOrder, u.item.DeleteOrder = d.Policies.Order.Apply, d.Policies.Order.Delete
	u.item.Defines = d.Defines
	resetContentUnknown(&u.item)
	u.item.DeletePolicy = d.Policies.Delete
	if u.item.DeletePolicy == v1alpha1.DeletePolicyDelete {
		u.item.DeletePolicy = ""
	}
	if !u.recorded || u.isSame() && !u.isRekeyed() {
		u.item.DependsOn = dependenciesOf(d)
	}
}

func (u *unit) setLive(in Input) {
	u.live = in.Live[u.key]
	if failure, failed := in.Failed[u.key]; failed {
		u.failure = &failure
	}
	if u.live.Existence == Present {
		if u.live.Ownership.Controller.UID == in.Owner.Ref.UID {
			u.live.Ownership.Controller = Controller{} // the component itself is no other owner
		}
		policies := policy.Set{Adoption: v1alpha1.AdoptionPolicyIfUnowned}
		if u.desired != nil {
			policies = u.desired.Policies
		}
		u.relation, u.otherOwner = relate(in.Owner, u.item, policies, u.live)
		// A crash may have kept from the record that the object was taken over.
		u.item.Inherited = u.item.Inherited && !u.isOurs()
	}
	if earlier := u.live.EarlierAppliedHash; earlier != "" && earlier == u.item.AppliedHash {
		u.item.AppliedHash = u.live.AppliedHash // the same, in the present version of the hash
	}
	u.assumeDesiredManifest()
}

// isNotStored reports whether the server has answered the creation of the object without
// a uid: it keeps no such object, so that none can be read or deleted.
func (u *unit) isNotStored() bool {
	return u.item.UID == "" && !u.item.Inherited && u.item.Digest != "" && u.item.Phase == vocabulary.PhaseApplied && u.item.RunOn == ""
}

// step starts a step on the live object, with the observation as its precondition.
func (u *unit) step(verb Verb, stage int, reason Reason) Step {
	return Step{
		Verb: verb, Key: u.key, Version: u.item.Version, Stage: stage, Reason: reason,
		UID: u.live.UID, ResourceVersion: u.live.ResourceVersion, Ownership: u.live.Ownership, Finalizers: u.live.Finalizers,
		HasOwnerReferences: u.live.HasOwnerReferences, Carried: u.live.Carried, Reclaims: u.live.Reclaims, Scaled: u.live.Scaled != nil,
		ItemAfter: u.item,
	}
}
