// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// oracle knows the truth about the world, and checks the order of the steps
// against it. It shares no code with the decisions of the planner.
type oracle struct {
	driver *driver
	// purged and applied remember what the planner has to know from its record.
	purged  map[Key]string           // the digest of the work that is done
	applied map[Key]bool             // the object was written at least once
	decided map[Key]bool             // the purge was recorded before this reconcile
	start   []v1alpha1.InventoryItem // the record before this reconcile
	ran     map[Key]bool             // ran before or after the deletion
	removes bool                     // the deletion has removed something
	once    map[Key]bool             // was to be applied only once: its last manifest was not written
}

func newOracle(d *driver) *oracle {
	return &oracle{driver: d, purged: map[Key]string{}, applied: map[Key]bool{}, once: map[Key]bool{}, ran: map[Key]bool{}}
}

// startReconcile is called before every reconcile.
func (o *oracle) startReconcile() {
	o.dropUnknowable()
	o.start, o.decided = o.driver.durable, map[Key]bool{}
	for _, d := range o.driver.desired {
		o.once[d.Key] = o.once[d.Key] || d.Policies.Reconcile == v1alpha1.ReconcilePolicyOnce
	}
	for _, item := range o.driver.durable {
		if item.Phase == v1alpha1.PhaseCompleting {
			o.decided[KeyOf(item)], o.purged[KeyOf(item)] = true, item.Digest
		}
	}
}

// before is called before every step.
func (o *oracle) before(s Step) {
	if o.driver.cause == Deleting && o.beforeHook(s) {
		return
	}
	switch s.Verb {
	case VerbDryRun: // it changes nothing
	case VerbDelete, VerbOrphan:
		o.beforeRemoval(s)
	default:
		o.beforeWrite(s)
	}
}

func (o *oracle) desiredFor(key Key) *Desired {
	i := slices.IndexFunc(o.driver.desired, func(d Desired) bool { return d.Key == key })
	if i < 0 || o.driver.cause == Deleting {
		return nil
	}
	return &o.driver.desired[i]
}

// beforeWrite checks that what has to come before the write is there: all
// earlier waves ready; in the wave the earlier stages written, or, for the late
// and the instance stage, ready.
func (o *oracle) beforeWrite(s Step) {
	o.applied[s.Key] = true
	if o.driver.misled {
		return // with an old state of the watch it cannot know better
	}
	at := s.Desired.Policies.Order.Apply
	for _, reference := range s.Desired.Policies.DependsOn {
		if d := o.desiredFor(Key(reference)); d == nil || !o.settled(*d) {
			o.driver.world.violate("%s %s: depends on %s, which is not settled", s.Verb, s.Key, Key(reference))
		}
	}
	for _, other := range o.driver.desired {
		before := other.Policies.Order.Apply
		switch {
		case before > at || before == at && stageOf(other.Key) >= stageOf(s.Key):
		case before == at && stageOf(s.Key) < stageLate:
			if o.driver.world.objects[other.Key] == nil && !o.isDone(other) {
				o.driver.world.violate("%s %s: %s of the same wave is not written", s.Verb, s.Key, other.Key)
			}
		case !o.settled(other):
			o.driver.world.violate("%s %s: %s comes before it and is not settled", s.Verb, s.Key, other.Key)
		}
	}
}

func stageOf(key Key) int {
	if key.Kind == "Foo" {
		return stageInstance
	}
	return kindOf(key).apply
}

// isDone reports whether the object did its work, or is applied only once and was.
func (o *oracle) isDone(d Desired) bool {
	purged := d.Policies.Order.Purge != nil && o.purged[d.Key] == d.Digest
	return purged || d.Policies.Reconcile == v1alpha1.ReconcilePolicyOnce && o.applied[d.Key]
}

// settled reports whether the desired object is there, ours, as desired, and ready.
func (o *oracle) settled(d Desired) bool {
	live := o.driver.world.objects[d.Key]
	if live == nil || live.holder != heldByUs {
		return o.isDone(d) || live != nil && ignores(d, live)
	}
	once := d.Policies.Reconcile == v1alpha1.ReconcilePolicyOnce
	value, _, _ := valueIn(d)
	ready := live.status.Readiness == Ready ||
		live.status.Readiness == ReadinessUnknown && !o.driver.world.now.Before(live.created.Add(EmptyStatusGracePeriod))
	return live.deleting.IsZero() && ready && (live.value == value || once)
}

// ignores reports whether the object of others is to be ignored, and counts as ready.
func ignores(d Desired, live *object) bool {
	// Without the label nothing says that an earlier incarnation has created it.
	earlier := live.holder == heldByEarlier && live.ownership.OwnerID != ""
	return d.Policies.Adoption == v1alpha1.AdoptionPolicyIgnore && live.deleting.IsZero() && live.holder != heldByUs && !earlier
}

// beforeRemoval checks that what has to be gone before is gone.
func (o *oracle) beforeRemoval(s Step) {
	d := o.desiredFor(s.Key)
	if s.Reason == ReasonPurged {
		o.beforePurge(s, *d)
		return
	}
	if d != nil {
		if s.Verb == VerbOrphan && s.Reason == ReasonOwnedByOthers && d.Policies.Adoption == v1alpha1.AdoptionPolicyIgnore {
			return
		}
		recreates := d.Policies.Recreates()
		if s.Reason != ReasonRecreate || !recreates {
			o.driver.world.violate("%s %s: it is desired", s.Verb, s.Key)
		}
		return
	}
	mine, recorded := o.driver.item(s.Key)
	if !recorded || o.driver.misled {
		return // the first is a violation of its own
	}
	o.beforePrune(s, mine)
	for _, key := range o.driver.world.keys() {
		if live := o.driver.world.objects[key]; o.needs(live, s.Key) {
			o.driver.world.violate("%s %s: %s depends on it", s.Verb, s.Key, key)
		}
	}
	now := o.deleteWave(mine, true)
	for _, item := range o.driver.durable {
		key := KeyOf(item)
		live := o.driver.world.objects[key]
		if o.desiredFor(key) != nil || o.isNeededNamespace(key) || o.isHookNamespace(key) || live == nil || live.holder != heldByUs || o.isTied(key) || o.isTied(s.Key) || o.comesAfter(item, s.Key) {
			continue
		}
		if cmp.Or(cmp.Compare(o.deleteWave(item, false), now), cmp.Compare(removalOf(key), removalOf(s.Key))) < 0 {
			o.driver.world.violate("%s %s: %s goes before it and is still there", s.Verb, s.Key, key)
		}
	}
}

// needs reports whether an object of ours, as it was last written, depends on another.
func (o *oracle) needs(live *object, on Key) bool {
	item, recorded := o.driver.item(live.key)
	if !recorded || live.holder != heldByUs || item.UID != live.uid || o.once[live.key] {
		return false
	}
	return slices.Contains(live.dependsOn, policy.Reference(on))
}

// isTied reports whether the order of removal of an object may be another than
// that of its wave and kind, because of dependencies of its own or of what it holds.
func (o *oracle) isTied(key Key) bool {
	for _, item := range slices.Concat(o.start, o.driver.durable) {
		for _, reference := range item.DependsOn {
			if isCarrier(key) || KeyOf(item) == key || reference == key.reference() {
				return true
			}
		}
	}
	return carrierOf(key) != "" && o.isTied(namespaceKey("any"))
}

// isNeededNamespace reports whether desired objects live in the namespace.
func (o *oracle) isNeededNamespace(key Key) bool {
	return o.driver.cause == Applying && key.Kind == "Namespace" &&
		slices.ContainsFunc(o.driver.desired, func(d Desired) bool { return d.Key.Namespace == key.Name })
}

// deleteWave is the delete wave of an object, which for a namespace or a definition
// is not before that of what it holds: of what is recorded, or only of what is still there.
func (o *oracle) deleteWave(item v1alpha1.InventoryItem, there bool) int16 {
	order := item.DeleteOrder
	for _, other := range slices.Concat(o.start, o.driver.durable) {
		held := item.Kind == "Namespace" && other.Namespace == item.Name ||
			slices.Contains(item.Defines, v1alpha1.TypeInfo{Group: other.Group, Kind: other.Kind})
		live := o.driver.world.objects[KeyOf(other)]
		if held && o.desiredFor(KeyOf(other)) == nil && (!there || live != nil && live.holder == heldByUs) {
			order = max(order, other.DeleteOrder)
		}
	}
	return order
}

func removalOf(key Key) int {
	if key.Kind == "Foo" {
		return removeInstance
	}
	return kindOf(key).remove
}

// beforePurge checks that the object did its work: it and everything up to its
// purge order is ready, unless the purge was recorded before.
func (o *oracle) beforePurge(s Step, d Desired) {
	item, _ := o.driver.item(s.Key)
	if item.Phase != v1alpha1.PhaseCompleting {
		o.driver.world.violate("purge %s: is not recorded", s.Key)
	}
	if !o.decided[s.Key] && !o.driver.misled {
		for _, other := range o.driver.desired {
			if other.Policies.Order.Apply <= *d.Policies.Order.Purge && !o.settled(other) && !o.isDone(other) {
				o.driver.world.violate("purge %s: %s is not settled", s.Key, other.Key)
			}
		}
	}
	o.purged[s.Key] = d.Digest
}

func (o *oracle) orphans(item v1alpha1.InventoryItem) bool {
	if item.Phase == v1alpha1.PhaseReleased {
		return true
	}
	switch item.DeletePolicy {
	case v1alpha1.DeletePolicyOrphan:
		return true
	case v1alpha1.DeletePolicyOrphanOnApply:
		return o.driver.cause == Applying
	case v1alpha1.DeletePolicyOrphanOnDelete:
		return o.driver.cause == Deleting
	default:
		return false
	}
}

// dropUnknowable drops what cannot be known: an object that lost our label and annotation before
// its uid was recorded; and an object that was adopted from an owner with a label and annotation
// that are still on it, once the policy that allowed it is gone. It also gives up what is to be
// orphaned and has no label or annotation of ours, because nothing is left to do about it.
func (o *oracle) dropUnknowable() {
	for key, live := range o.driver.world.objects {
		item, _ := o.driver.item(key)
		live.stolen = live.stolen && item.UID == live.uid // what was dropped may be asked for again
		if item.UID == live.uid && o.isAskedForAgain(live, item) {
			live.holder = heldByUs
		}
		if live.holder != heldByUs {
			continue
		}
		bare := live.ownership.OwnerID == "" && live.ownership.Ref == OwnerRef{}
		unknowable := bare && item.UID != live.uid
		adopted := len(live.ownership.OtherOwners) > 0 && (o.desiredFor(key) == nil || live.ownership.OwnerID == "")
		switch {
		case adopted:
			live.holder = heldByOther
		case unknowable, bare && o.desiredFor(key) == nil && o.orphans(item) && !o.isDueHook(key, item):
			live.holder = unheld
		}
	}
}

// isAskedForAgain reports whether an object that was given up is ours after all,
// because the policies have changed before that was recorded.
func (o *oracle) isAskedForAgain(live *object, item v1alpha1.InventoryItem) bool {
	d := o.desiredFor(live.key)
	if len(live.ownership.OtherOwners) > 0 {
		return live.ownership.OwnerID == theOwner.ID && d != nil && d.Policies.Adoption == v1alpha1.AdoptionPolicyAlways
	}
	return live.holder == unheld && item.Seal == live.seal() && (d != nil || !o.orphans(item))
}

// leftovers returns the objects of ours that are not desired.
func (o *oracle) leftovers() []Key {
	var keys []Key
	for _, key := range o.driver.world.keys() {
		if o.driver.world.objects[key].holder == heldByUs && o.desiredFor(key) == nil && !o.isNeededNamespace(key) {
			keys = append(keys, key)
		}
	}
	return keys
}
