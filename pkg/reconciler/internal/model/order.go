// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"math"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// The checks of the order. They hold against the truth of the moment only in a
// reconcile without disturbances; otherwise the reconcile cannot know better.

// ranks place a kind: when it is applied within its wave, and when it is removed.
type ranks struct{ apply, remove int }

var ranksOf = map[string]ranks{
	"Namespace": {0, 9}, "CustomResourceDefinition": {1, 8}, "ServiceAccount": {2, 7}, "ConfigMap": {3, 7}, "Secret": {3, 7},
	"Deployment": {4, 6}, "Job": {4, 6}, "ValidatingWebhookConfiguration": {late, 4}, "Foo": {6, 5},
}

// late is the first rank for which the rest of the wave must be ready, not only written.
const late = 5

func (m *Model) checkWriteOrder(s *State, a *actor, step plan.Step) {
	if a.disturbed {
		return
	}
	at, rank := step.Desired.Policies.Order.Apply, ranksOf[step.Key.Kind]
	for _, other := range m.desiredObjects(a) {
		before, first := other.Policies.Order.Apply, ranksOf[other.Key.Kind].apply < rank.apply
		switch {
		case before < at && !m.isSettled(s, a.snap.UID, other):
			s.violate("O1 waves: %s %s in wave %d, and %s of wave %d is not settled", step.Verb, step.Key, at, other.Key, before)
		case before == at && first && rank.apply >= late && !m.isSettled(s, a.snap.UID, other):
			s.violate("O3 instances last: %s %s, and %s of its wave is not settled", step.Verb, step.Key, other.Key)
		case before == at && first && s.world.get(other.Key) == nil && !m.isFinished(s, a.snap.UID, other):
			s.violate("O4/O6 stages: %s %s, and %s of its wave is not there", step.Verb, step.Key, other.Key)
		}
	}
	if step.Key.Namespace != "" && s.world.get(namespaceOf(step.Key)) == nil && m.Missing == v1alpha1.MissingNamespacesPolicyCreate {
		s.violate("O4 namespace first: %s %s, and its namespace is not there", step.Verb, step.Key)
	}
}

// isFinished reports whether the object did its work, or is applied only once and was.
func (m *Model) isFinished(s *State, me Holder, d plan.Desired) bool {
	k := doneKey{me, d.Key}
	if d.Policies.Reconcile == once && s.truth.once[k] {
		return true
	}
	done := s.truth.done[k]
	return ends(d) && (done == unkeyed(d.Digest) || done == anyManifest || s.purgeRecorded(me, d))
}

// ends reports whether the object does its work and goes.
func ends(d plan.Desired) bool { return d.Policies.Order.Purge != nil || d.HasTTL }

// purgeRecorded reports whether the object has done its work in the record on the server.
func (s *State) purgeRecorded(me Holder, d plan.Desired) bool {
	for _, c := range s.world.components {
		if c != nil && c.UID == me {
			item, _ := itemOf(c.Inventory, d.Key)
			made := plan.IsRekeyed(item) || unkeyed(item.Digest) == unkeyed(d.Digest)
			return made && (item.Phase == vocabulary.PhaseCompleting || item.Phase == vocabulary.PhaseCompleted)
		}
	}
	return false
}

// isSettled reports whether the desired object is there, ours, as desired, and ready.
func (m *Model) isSettled(s *State, me Holder, d plan.Desired) bool {
	o := s.world.get(d.Key)
	if m.ignored(s, me, d) {
		return true
	}
	if o == nil || o.Holder != me {
		return m.isFinished(s, me, d)
	}
	left := d.Policies.Reconcile == once || d.Policies.Reconcile == v1alpha1.ReconcilePolicyOncePerManifest && o.Made == unkeyed(d.Digest)
	return !o.Deleting && o.Ready && (o.Value == manifestOf(&d).value || left)
}

// ignored reports whether the object is not the component's and is to be left alone, as
// it is.
func (m *Model) ignored(s *State, me Holder, d plan.Desired) bool {
	o := s.world.get(d.Key)
	return d.Policies.Adopts().IgnoresOthers && o != nil && !o.Deleting && !sameName(m.holder(s, o), me)
}

// phase is the phase of an object in the record on the server.
func (m *Model) phase(s *State, a *actor, key plan.Key) string {
	if c := s.world.components[a.component]; c != nil {
		item, _ := itemOf(c.Inventory, key)
		return item.Phase
	}
	return ""
}

// checkPurge checks that the object did its work, and that the record has that.
func (m *Model) checkPurge(s *State, a *actor, step plan.Step, d plan.Desired) {
	if m.phase(s, a, step.Key) != vocabulary.PhaseCompleting {
		s.violate("S1 write-ahead: purge %s, and the record on the server does not say so", step.Key)
	}
	before, _ := itemOf(a.snap.Inventory, step.Key)
	if a.disturbed || before.Phase == vocabulary.PhaseCompleting && len(a.plan.Inventory) > 0 && !a.plan.MustRecord {
		return // it was decided before
	}
	for _, other := range m.desiredObjects(a) {
		if other.Policies.Order.Apply <= *d.Policies.Order.Purge && other.Key != step.Key && !m.isSettled(s, a.snap.UID, other) && !m.isFinished(s, a.snap.UID, other) {
			s.violate("O7 purge order: purge %s, and %s is not settled", step.Key, other.Key)
		}
	}
}

// checkRemovalOrder checks that the objects that have to be gone before are gone.
func (m *Model) checkRemovalOrder(s *State, a *actor, step plan.Step) {
	c := s.world.components[a.component]
	if a.disturbed || c == nil || m.desiredNow(a, step.Key) != nil {
		return
	}
	mine, _ := itemOf(c.Inventory, step.Key)
	now := m.removalWave(s, a, c, mine, true)
	for _, item := range c.Inventory {
		key := plan.KeyOf(item)
		o := s.world.get(key)
		if o == nil || m.holder(s, o) != c.UID || m.desiredNow(a, key) != nil || m.livedIn(a, key) {
			continue
		}
		earlier := cmp.Or(cmp.Compare(m.removalWave(s, a, c, item, false), now), cmp.Compare(ranksOf[key.Kind].remove, ranksOf[step.Key.Kind].remove)) < 0
		if earlier {
			s.violate("O2/O3/O4 removal: delete %s, and %s, which goes before, is there", step.Key, key)
		}
	}
}

// livedIn reports whether desired objects live in the namespace.
func (m *Model) livedIn(a *actor, key plan.Key) bool {
	return isNamespace(key) && slices.ContainsFunc(m.desiredObjects(a), func(d plan.Desired) bool { return d.Key.Namespace == key.Name })
}

// removalWave is the wave in which an object is removed: a container goes not before its content.
// All recorded content counts, or, with there, only objects that exist.
func (m *Model) removalWave(s *State, a *actor, c *Component, item v1alpha1.InventoryItem, there bool) int {
	wave := math.MinInt
	for _, other := range c.Inventory {
		key := plan.KeyOf(other)
		held := isNamespace(plan.KeyOf(item)) && other.Namespace == item.Name ||
			slices.Contains(item.Defines, v1alpha1.TypeInfo{Group: other.Group, Kind: other.Kind})
		o := s.world.get(key)
		if held && m.desiredNow(a, key) == nil && (!there || o != nil && m.holder(s, o) == c.UID) {
			wave = max(wave, int(other.DeleteOrder))
		}
	}
	return max(wave, int(item.DeleteOrder))
}
