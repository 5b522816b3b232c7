// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

const once = v1alpha1.ReconcilePolicyOnce

// The checks of single requests. Each is made at the moment when the server
// carries the request out, and looks at the truth of that moment.

// checkCommon checks the rules for every write to a dependent object.
func (m *Model) checkCommon(s *State, a *actor, step plan.Step) {
	c := s.world.components[a.component]
	if c == nil || c.UID != a.snap.UID {
		return // the component is gone; only a write with a precondition may still come
	}
	if _, recorded := itemOf(c.Inventory, step.Key); !recorded {
		s.violate("S1 write-ahead: %s %s, and it is not in the record on the server", step.Verb, step.Key)
	}
	if !c.HasFinalizer && !s.truth.finalizerRemoved[c.UID] {
		s.violate("S12 finalizer: %s %s, and the component has no finalizer", step.Verb, step.Key)
	}
}

func (m *Model) checkCreate(s *State, a *actor, step plan.Step) {
	m.checkCommon(s, a, step)
	if step.UID != "" || step.ResourceVersion != "" {
		s.violate("P6 staleness: create %s demands an object, not its absence", step.Key)
	}
	k := doneKey{a.snap.UID, step.Key}
	if s.truth.done[k] == unkeyed(step.Desired.Digest) && (step.Desired.Policies.Order.Purge != nil || step.Desired.HasTTL && m.isMade(s, a, step)) {
		s.violate("S19 at most once: %s did its work, was removed, and is created again", step.Key)
	}
	if s.truth.once[k] && step.Desired.Policies.Reconcile == once {
		s.violate("S19 at most once: %s is applied only once, and is created again", step.Key)
	}
	m.checkWriteOrder(s, a, step)
}

// isMade reports whether the record on the server tells that the object was made of the manifest.
// An object that was never recorded cannot be known to have done its work.
func (m *Model) isMade(s *State, a *actor, step plan.Step) bool {
	c := s.world.components[a.component]
	if c == nil {
		return false
	}
	item, _ := itemOf(c.Inventory, step.Key)
	return item.UID != "" && (plan.IsRekeyed(item) || unkeyed(item.Digest) == unkeyed(step.Desired.Digest))
}

func (m *Model) checkWrite(s *State, a *actor, step plan.Step, o *Object) {
	m.checkCommon(s, a, step)
	if step.UID == "" || step.ResourceVersion == "" {
		s.violate("P6 staleness: %s %s has no precondition", step.Verb, step.Key)
	}
	me, adoption := a.snap.UID, step.Desired.Policies.Adoption
	known, holder := m.records(s, me, o), m.holder(s, o)
	var allowed bool
	switch {
	case o.Holder == me, holder == Unowned && o.FormerHolder == me && known:
		allowed = true
	case adoption == v1alpha1.AdoptionPolicyAlways:
		allowed = !(o.Stolen && known)
	case adoption == v1alpha1.AdoptionPolicyIfUnowned:
		allowed = holder == Unowned || sameName(holder, me)
	case adoption == v1alpha1.AdoptionPolicyIgnore:
		allowed = sameName(holder, me)
	}
	if !allowed {
		s.violate("S2 no modification of objects of others: %s %s, which is held by %q, and the adoption policy is %s", step.Verb, step.Key, holder, adoption)
	}
	if holder == me && step.Desired.Policies.Reconcile == once && (s.truth.once[doneKey{me, step.Key}] || o.OwnerID != "") {
		s.violate("S19 at most once: %s %s, which is applied only once", step.Verb, step.Key)
	}
	if step.Verb == plan.VerbReplace && o.Controlled != step.HasOwnerReferences {
		s.violate("S16 field confinement: replace %s does not know of the ownerReferences of others", step.Key)
	}
	if step.Verb == plan.VerbReplace && o.Held && !slices.Contains(step.Finalizers, otherFinalizer) {
		s.violate("S16 field confinement: replace %s removes the finalizer of another client", step.Key)
	}
	m.checkWriteOrder(s, a, step)
}

// holder is the owner of the object as far as that can be known: an object without ownership
// metadata that is in no record by its uid is its controller's, or has no holder.
func (m *Model) holder(s *State, o *Object) Holder {
	bare := o.OwnerID == "" && o.Ref == plan.OwnerRef{}
	if bare && o.Holder != OtherOwner && (!m.records(s, o.Holder, o) || m.isOrphaned(s, o)) {
		if o.Controlled {
			return OtherOwner
		}
		return Unowned
	}
	return o.Holder
}

// isOrphaned reports whether the object is orphaned in the record of its holder.
func (m *Model) isOrphaned(s *State, o *Object) bool {
	for _, c := range s.world.components {
		if c != nil && c.UID == o.Holder {
			item, _ := itemOf(c.Inventory, o.Key)
			return item.Phase == vocabulary.PhaseReleased || c.Deleting && orphans(item.DeletePolicy, plan.Deleting)
		}
	}
	return false
}

// records reports whether the record of a component has the object by its uid.
func (m *Model) records(s *State, me Holder, o *Object) bool {
	for _, c := range s.world.components {
		if c != nil && c.UID == me {
			item, _ := itemOf(c.Inventory, o.Key)
			return item.UID == uidOf(o.UID)
		}
	}
	return false
}

// checkRemoval checks deletions and orphaning.
func (m *Model) checkRemoval(s *State, a *actor, step plan.Step, o *Object) {
	m.checkCommon(s, a, step)
	me := a.snap.UID
	if step.UID == "" {
		s.violate("S3 no blind delete: %s %s has no uid", step.Verb, step.Key)
	}
	known, holder := m.records(s, me, o), m.holder(s, o)
	ours := holder == me || holder == Unowned && o.FormerHolder == me && known || sameName(holder, me) && known
	// From an object of another owner only our label and annotation are removed.
	parting := step.Verb == plan.VerbOrphan && o.Helm && (o.OwnerID == ownerBy(me).ID || o.Ref == ownerBy(me).Ref)
	if !ours && !parting {
		s.violate("S2 no modification of objects of others: %s %s, which is owned by %q", step.Verb, step.Key, holder)
	}
	if step.Verb != plan.VerbDelete {
		return
	}
	if o.Orphaned && !step.Guard.AllowsOrphan() {
		s.violate("S10 orphan means alive: delete %s, which was orphaned", step.Key)
	}
	m.checkPolicy(s, a, step, o)
	m.checkGuard(s, a, step, o)
	m.checkRemovalOrder(s, a, step)
}

// checkPolicy checks that the object may be deleted at all.
func (m *Model) checkPolicy(s *State, a *actor, step plan.Step, o *Object) {
	desired := m.desiredNow(a, step.Key)
	switch {
	case desired == nil:
		item, _ := itemOf(a.plan.Inventory, step.Key)
		if orphans(item.DeletePolicy, a.cause()) {
			s.violate("S10 orphan means alive: delete %s, and its delete policy is %s", step.Key, item.DeletePolicy)
		}
	case step.Reason == plan.ReasonPurged && desired.Policies.Order.Purge != nil:
		m.checkPurge(s, a, step, *desired)
	case !desired.Policies.Recreates():
		s.violate("S9 no destructive refresh: delete %s, which is desired and not to be recreated", step.Key)
	case o.Made == unkeyed(desired.Digest) && o.Holder == a.snap.UID:
		s.violate("S9 no destructive refresh: delete %s, which has an unchanged manifest", step.Key)
	case !a.accepted[step.Key]:
		s.violate("S9 no destructive refresh: delete %s, and nothing says that the server would create it anew", step.Key)
	case m.phase(s, a, step.Key) != vocabulary.PhaseRecreating:
		s.violate("S1 write-ahead: delete %s to create it anew, and the record on the server does not say so", step.Key)
	}
	if isNamespace(step.Key) && (step.Key == componentNamespace || step.Key.Name == "default") {
		s.violate("S8 protected namespace: delete %s", step.Key)
	}
}

// desiredNow is the desired object of the key, in the version that the reconcile is about.
func (m *Model) desiredNow(a *actor, key plan.Key) *plan.Desired {
	desired := m.desiredObjects(a)
	i := slices.IndexFunc(desired, func(d plan.Desired) bool { return d.Key == key })
	if i < 0 {
		return nil
	}
	return &desired[i]
}

// checkGuard checks that nothing goes with the object. Objects that come after the guard
// has read are the documented window.
func (m *Model) checkGuard(s *State, a *actor, step plan.Step, o *Object) {
	if len(o.Defines) == 0 && !isNamespace(o.Key) {
		return
	}
	looked := false
	for i, other := range a.plan.Steps {
		looked = looked || other.Key == step.Key && a.guarded&(1<<i) != 0
	}
	if looked {
		return
	}
	for _, x := range s.world.inside(o) {
		s.violate("S7/S8 guards: delete %s without a look at what is in it, and %s is", step.Key, x.Key)
	}
}

// checkRecord checks the items that are removed from the record.
func (m *Model) checkRecord(s *State, a *actor, c *Component, items []v1alpha1.InventoryItem) {
	if len(items) > 0 && !c.HasFinalizer {
		s.violate("S12 finalizer: objects are recorded, and the component has no finalizer")
	}
	for _, item := range items {
		if d := m.desiredNow(a, plan.KeyOf(item)); d != nil && d.Policies.Reconcile == once && item.Digest != "" {
			s.truth.once = with(s.truth.once, doneKey{c.UID, d.Key}, true)
		}
	}
	for _, item := range c.Inventory {
		key := plan.KeyOf(item)
		if _, stays := itemOf(items, key); !stays {
			m.checkDropped(s, a, item)
			s.truth.dropObject(doneKey{c.UID, key})
		}
	}
}

// checkDropped checks that an object that is removed from the record is provably not ours.
func (m *Model) checkDropped(s *State, a *actor, item v1alpha1.InventoryItem) {
	o := s.world.get(plan.KeyOf(item))
	me := a.snap.UID
	bare := o != nil && o.OwnerID == "" && o.Ref == plan.OwnerRef{}
	if o == nil || m.holder(s, o) != me || bare && orphans(item.DeletePolicy, a.cause()) {
		return // or nothing is left to be removed
	}
	s.violate("S4 inventory is complete: %s is dropped from the record, and it exists and is ours", o.Key)
}

func orphans(p v1alpha1.DeletePolicy, cause plan.Cause) bool {
	return cause == plan.Deleting && policy.OrphansOnDelete(p) || cause == plan.Applying && policy.OrphansOnApply(p)
}

// checkFinalizerRemoval checks that a component leaves nothing behind.
func (m *Model) checkFinalizerRemoval(s *State, a *actor) {
	for _, o := range s.world.objects {
		if m.holder(s, o) == a.snap.UID {
			s.violate("S12 finalizer: it is removed, and %s exists", o.Key)
		}
	}
}

// checkPlan checks a plan against its input.
func (m *Model) checkPlan(s *State, in plan.Input, p plan.Plan) {
	for _, step := range p.Steps {
		live := in.Live[step.Key]
		removes := step.Verb == plan.VerbDelete || step.Verb == plan.VerbOrphan
		if removes && live.Existence != plan.Present {
			s.violate("S3 no blind delete: %s %s, which was not seen", step.Verb, step.Key)
		}
		if live.Existence == plan.NotFetched && step.Verb != plan.VerbCreate {
			s.violate("S5 unknown is not absent: %s %s, which was not read", step.Verb, step.Key)
		}
		if live.Existence == plan.Unknown {
			s.violate("S5 unknown is not absent: %s %s, which could not be read", step.Verb, step.Key)
		}
		if step.Verb != plan.VerbCreate && step.UID != live.UID {
			s.violate("P6 staleness: %s %s does not demand the object that was seen", step.Verb, step.Key)
		}
	}
	for _, item := range in.Recorded {
		key := plan.KeyOf(item)
		if _, stays := itemOf(p.Inventory, key); !stays && in.Live[key].Existence != plan.Absent && in.Live[key].Existence != plan.Present {
			s.violate("S5 unknown is not absent: %s is dropped from the record, and could not be read", key)
		}
	}
	if len(p.Steps) > 0 && p.MustRecord {
		return
	}
	for _, step := range p.Steps {
		if item, recorded := itemOf(in.Recorded, step.Key); !recorded || item.Phase != step.ItemAfter.Phase && step.Verb == plan.VerbDelete {
			s.violate("S1 write-ahead: %s %s relies on a record that need not be durable", step.Verb, step.Key)
		}
	}
}
