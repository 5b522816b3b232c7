// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// otherOwner is another component of the same kind that the model does not run.
var otherOwner = plan.Owner{ID: "id-other", Ref: plan.OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "other", UID: "other1"}}

// isFree reports whether an act is no disturbance: time passes in any case.
func (a Act) isFree() bool { return a.Kind == ActHalfTimeout }

// enabled reports whether an act is possible, and makes a difference.
func (m *Model) enabled(s *State, act Act) bool {
	switch act.Kind {
	case ActChange, ActRemove, ActRecreate, ActForce, ActTouchStatus, ActForge:
		return m.enabledOn(s, act)
	case ActCrash:
		return !s.isQuiet()
	case ActLoseKey:
		return s.key+1 < m.Config.keys()
	case ActLoseLease:
		return int(s.active)+1 < m.Leaders
	case ActHalfTimeout:
		return s.halves < 2
	case ActDelay:
		_, is := s.isLate(act.Leader, act.Key)
		return !is
	}
	o := s.world.get(act.Key)
	if o == nil {
		ns := s.world.get(namespaceOf(act.Key))
		served, _ := s.world.defined(act.Key.GroupKind())
		lives := served && (act.Key.Namespace == "" || ns != nil && !ns.Deleting)
		return (act.Kind == ActCreate || act.Kind == ActCreateOwned) && lives
	}
	switch act.Kind {
	case ActCreate, ActCreateOwned:
		return false
	case ActDrift:
		return o.Value != drifted
	case ActAdd:
		return !o.Extra
	case ActDelete:
		return !o.Deleting
	case ActDeleteAnew:
		return !o.Deleting && !o.Held
	case ActStrip:
		return o.OwnerID != "" || o.Ref != plan.OwnerRef{}
	case ActUnlabel:
		return o.OwnerID != ""
	case ActSteal:
		return o.OwnerID != otherOwner.ID
	case ActHelm:
		return !o.Helm
	case ActControl:
		return !o.Controlled
	case ActHold:
		return !o.Held && !o.Deleting
	case ActUnhold:
		return o.Held
	case ActUnready:
		return o.Ready && !readyAtOnce(o.Key)
	case ActExpire:
		return o.Expires && o.Ready && !o.Deleting
	default:
		panic("an unknown act: " + string(act.Kind))
	}
}

func (m *Model) enabledOn(s *State, act Act) bool {
	c := s.world.components[act.Component]
	if c == nil {
		return act.Kind == ActRecreate
	}
	switch act.Kind {
	case ActChange:
		return !c.Deleting && c.Version+1 < len(m.Components[act.Component])
	case ActRemove:
		return !c.Deleting
	case ActForce:
		return c.Deleting && c.HasFinalizer
	case ActTouchStatus:
		return true
	case ActForge:
		return s.world.get(act.Key) != nil && !slices.ContainsFunc(c.Inventory, func(i v1alpha1.InventoryItem) bool { return plan.KeyOf(i) == act.Key })
	default:
		return false
	}
}

const drifted = "drifted"

// act carries out a disturbance.
func (m *Model) act(s *State, act Act) {
	switch act.Kind {
	case ActChange, ActRemove, ActRecreate, ActForce, ActTouchStatus, ActForge:
		m.actOn(s, act)
		return
	case ActCrash, ActLoseKey:
		s.note("%s", act.Kind)
		if act.Kind == ActLoseKey {
			s.key++
		}
		for i := range s.actors {
			if s.actors[i].leader == s.active {
				s.actors[i].reset()
			}
		}
		s.dropAnswers(s.active)
		return
	case ActHalfTimeout:
		s.note("%s", act.Kind)
		s.halves++
		return
	case ActDelay:
		s.note("%s, for leader %d and %s", act.Kind, act.Leader+1, act.Key)
		s.delay(act.Leader, act.Key)
		return
	case ActLoseLease:
		s.note("%s", act.Kind)
		s.active++
		return
	}
	s.note("another client %s %s", act.Kind, act.Key)
	o := s.world.get(act.Key)
	switch act.Kind {
	case ActCreate, ActCreateOwned:
		s.world.put(theirs(act))
		return
	case ActDelete:
		s.world.removed(o)
		return
	case ActExpire:
		s.truth.done = with(s.truth.done, doneKey{o.Holder, o.Key}, s.madeOf(o))
		s.world.removed(o)
		return
	case ActDeleteAnew:
		s.world.drop(act.Key)
		s.world.put(theirs(act))
		return
	}
	next := *o
	change(&next, act.Kind, m.knownUID(s, o))
	s.world.put(next)
	if act.Kind == ActUnhold && next.Deleting {
		s.world.removed(s.world.get(act.Key))
	}
}

// theirs is an object that another client creates.
func theirs(act Act) Object {
	o := Object{Key: act.Key, Value: "theirs", Ready: true}
	if act.Kind == ActCreateOwned {
		o.OwnerID, o.Ref, o.Holder = otherOwner.ID, otherOwner.Ref, OtherOwner
	}
	return o
}

// change changes an object by an act. Known is set if its holder has recorded its uid.
func change(o *Object, kind ActKind, known bool) {
	switch kind {
	case ActDrift:
		o.Value = drifted
	case ActAdd:
		o.Extra = true
	case ActStrip:
		o.OwnerID, o.Ref = "", plan.OwnerRef{}
		if o.Holder == OtherOwner && !o.Helm {
			// A component that saw the label of the other owner may have orphaned it.
			o.Holder, o.Stolen = Unowned, false
		}
	case ActUnlabel:
		o.OwnerID = ""
	case ActSteal:
		o.takenOver(known)
		o.OwnerID, o.Ref = otherOwner.ID, otherOwner.Ref
	case ActHelm:
		o.takenOver(known)
		o.Helm = true
	case ActControl:
		o.Controlled = true
	case ActHold:
		o.Held = true
	case ActUnhold:
		o.Held = false
	case ActUnready:
		o.Ready = false
	}
}

// takenOver gives the object to another owner.
func (o *Object) takenOver(known bool) {
	if o.Holder == OtherOwner {
		return
	}
	if o.Holder != Unowned {
		o.FormerHolder = o.Holder
	}
	o.Stolen, o.Holder = known, OtherOwner
}

// knownUID reports whether the record of the object's holder has its uid.
func (m *Model) knownUID(s *State, o *Object) bool {
	return m.records(s, o.Holder, o)
}

func itemOf(items []v1alpha1.InventoryItem, key plan.Key) (v1alpha1.InventoryItem, bool) {
	for _, item := range items {
		if plan.KeyOf(item) == key {
			return item, true
		}
	}
	return v1alpha1.InventoryItem{}, false
}

func (m *Model) actOn(s *State, act Act) {
	s.note("another client %s %c", act.Kind, 'A'+rune(act.Component))
	c := s.world.components[act.Component]
	if act.Kind == ActRecreate {
		uid := following(s.truth.uids[act.Component])
		s.truth.uids = slices.Clone(s.truth.uids)
		s.truth.uids[act.Component] = uid
		s.world.putComponent(act.Component, Component{UID: uid})
		return
	}
	next := *c
	switch act.Kind {
	case ActChange:
		next.Version++
	case ActRemove:
		next.Deleting = true
	case ActForce:
		next.HasFinalizer = false
		s.truth.finalizerRemoved = with(s.truth.finalizerRemoved, c.UID, true)
	case ActForge:
		o := s.world.get(act.Key)
		forged := v1alpha1.InventoryItem{
			Group: o.Key.Group, Version: "v1", Kind: o.Key.Kind, Namespace: o.Key.Namespace, Name: o.Key.Name, UID: uidOf(o.UID), Digest: "forged",
			Seal: sealed(s.ownerBeside(act.Component), s.key, o.observation(false)).Seal, // copied from another record
		}
		next.Inventory = append(slices.Clone(c.Inventory), forged)
		s.note("which is %s", act.Key)
	}
	s.world.putComponent(act.Component, next)
	if next.Deleting && !next.HasFinalizer {
		s.world.components[act.Component] = nil
	}
}

// ownerBeside is another component than the component at the index.
func (s *State) ownerBeside(component int) plan.Owner {
	for i, uid := range s.truth.uids {
		if i != component {
			return ownerBy(uid)
		}
	}
	return otherOwner
}

// describe returns an observation as one word.
func describe(o plan.Observation) string {
	switch o.Existence {
	case plan.Absent:
		return "absent"
	case plan.Present:
		text := fmt.Sprintf("%s, version %s", o.UID, o.ResourceVersion)
		if !o.DeletionTimestamp.IsZero() {
			text += ", terminating"
		}
		return text
	case plan.NotFetched:
		return "not looked for"
	default:
		return "unknown, " + o.Message
	}
}
