// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// dependenciesOf returns the dependencies of a desired object as the record keeps them.
func dependenciesOf(d *Desired) []string { return RecordedReferences(d.Policies.DependsOn, "") }

// RecordedReferences returns references in the form of the inventory. One without a
// namespace means an object of the same namespace, or of none: both are kept, because
// one of them does not exist.
func RecordedReferences(references []policy.Reference, namespace string) []string {
	var kept []string
	for _, reference := range references {
		kept = append(kept, referenceTo(Key(reference)))
		if reference.Namespace == "" && namespace != "" {
			reference.Namespace = namespace
			kept = append(kept, referenceTo(Key(reference)))
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// mergeDependsOn adds the desired dependencies to the recorded ones, and reports whether
// any was added. As long as the answer to the write is outstanding, either may hold.
func (u *unit) mergeDependsOn() bool {
	both := slices.Concat(u.item.DependsOn, dependenciesOf(u.desired))
	slices.Sort(both)
	if both = slices.Compact(both); len(both) <= len(u.item.DependsOn) {
		return false
	}
	u.item.DependsOn = both
	return true
}

// findNeeds resolves the dependencies of desired objects. They were checked when the
// desired objects were built, so an unknown dependency is no mistake of a user.
func (w *work) findNeeds() error {
	var mistakes []error
	for _, u := range w.units {
		if u.desired == nil {
			continue
		}
		for _, reference := range u.desired.Policies.DependsOn {
			need := w.byKey[Key(reference)]
			if need == nil || need.desired == nil {
				mistakes = append(mistakes, fmt.Errorf("%s: depends on %s, which is not desired", u.key, Key(reference)))
				continue
			}
			u.needs = append(u.needs, need)
		}
		slices.SortFunc(u.needs, func(a, b *unit) int { return a.key.Compare(b.key) })
	}
	for _, u := range w.units {
		if cutCycles(u, nil) {
			mistakes = append(mistakes, fmt.Errorf("%s: depends on itself", u.key))
		}
	}
	w.resetVisits()
	return errors.Join(mistakes...)
}

// cutCycles removes the edges that lead back to the path of the walk, and reports whether there
// were any. It appends the visited units to order, prerequisites first.
func cutCycles(u *unit, order *[]*unit) (found bool) {
	if u.visited {
		return false
	}
	u.visited, u.visiting = true, true
	u.needs = slices.DeleteFunc(u.needs, func(need *unit) bool {
		if need.visiting {
			found = true
			return true
		}
		found = cutCycles(need, order) || found
		return false
	})
	u.visiting = false
	if order != nil {
		*order = append(*order, u)
	}
	return found
}

func (w *work) resetVisits() {
	for _, u := range w.units {
		u.visited = false
	}
}

// applyInOrder applies the object after its prerequisites in the same stage.
func (w *work) applyInOrder(u *unit) {
	if u.visited {
		return
	}
	u.visited = true
	for _, need := range u.needs {
		if need.item.ApplyOrder == u.item.ApplyOrder && applyStageOf(need) == applyStageOf(u) {
			w.applyInOrder(need)
		}
	}
	for _, need := range u.needs {
		if !need.settled {
			// Later objects of the wave wait, too.
			u.writeBlocked = w.hold(u, "waits for "+need.key.String()+", which it depends on", need.blockedByFailure)
			return
		}
	}
	w.planDesired(u)
}

// removalOrder orders objects for their removal, by delete wave and stage, and inside a stage by
// key. No object goes before its dependents: a namespace not before the objects in it, a type not
// before its instances, an object not before the objects that depend on it. If the waves
// contradict, the object is moved to the wave of its last dependent; if only the stages do, its
// dependents go early.
func (w *work) removalOrder(units []*unit, reason Reason) []*unit {
	w.findRemovalNeeds(units, reason)
	ordered := make([]*unit, 0, len(units)) // prerequisites first
	for _, u := range units {
		u.removing, u.removalWave, u.removalStage = true, u.item.DeleteOrder, w.removalStageOf(u, reason)
		if u.removalStage == removeReference {
			u.removalWave = math.MinInt16
		}
		// An inventory that was tampered with may hold a cycle. Its objects are removed in
		// some order.
		cutCycles(u, &ordered)
	}
	w.resetVisits()
	for _, u := range slices.Backward(ordered) {
		for _, need := range u.needs {
			need.removalWave = max(need.removalWave, u.removalWave)
		}
	}
	for _, u := range ordered {
		for _, need := range u.needs {
			if need.removalWave == u.removalWave {
				u.removalStage = min(u.removalStage, need.removalStage)
			}
			need.neededBy = append(need.neededBy, u)
		}
	}
	ordered = slices.Clone(units)
	slices.SortStableFunc(ordered, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.removalWave, b.removalWave), cmp.Compare(a.removalStage, b.removalStage))
	})
	return ordered
}

// findRemovalNeeds finds the prerequisites of each unit among the units. An orphan that goes first
// stays in the cluster, so its dependents are not affected.
func (w *work) findRemovalNeeds(units []*unit, reason Reason) {
	among := make(map[Key]*unit, len(units))
	types := map[schema.GroupKind][]*unit{}
	for _, u := range units {
		among[u.key] = u
		for _, defined := range u.item.Defines {
			gk := schema.GroupKind{Group: defined.Group, Kind: defined.Kind}
			types[gk] = append(types[gk], u)
		}
	}
	for _, u := range units {
		u.needs = nil
		add := func(need *unit) {
			if need != nil && need != u && !slices.Contains(u.needs, need) && !w.goesFirst(need, reason) {
				u.needs = append(u.needs, need)
			}
		}
		if u.key.Namespace != "" {
			add(among[namespaceKey(u.key.Namespace)])
		}
		for _, gk := range []schema.GroupKind{u.key.GroupKind(), {Group: u.key.Group, Kind: "*"}} {
			for _, definition := range types[gk] {
				add(definition)
			}
		}
		for _, reference := range u.item.DependsOn {
			add(among[parseReference(reference)])
		}
	}
}

// findFormerNeeds finds the prerequisites that desired objects had when they were last written and
// that are no longer desired. They stay until the objects are written again.
func (w *work) findFormerNeeds() {
	for _, u := range w.units {
		gone := u.live.Existence == Absent || u.live.Existence == Present && !u.isOurs()
		if u.desired == nil || gone || u.isAppliedOnce() {
			continue
		}
		for _, reference := range u.item.DependsOn {
			if need := w.byKey[parseReference(reference)]; need != nil && need.desired == nil {
				need.neededBy = append(need.neededBy, u)
			}
		}
	}
}

// remainingDependent returns an object that must be gone, or written again, before this one
// may be removed; nil if there is none.
func (u *unit) remainingDependent() *unit {
	for _, other := range u.neededBy {
		if !other.dropped {
			return other
		}
	}
	return nil
}
