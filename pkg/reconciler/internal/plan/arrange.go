// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// arrange orders objects for their removal, by delete wave and stage, and
// inside a stage by key. What others need does not go before them: a namespace
// not before the objects in it, a type not before its instances, an object not
// before those that depend on it. If the waves say otherwise, it is postponed to
// the wave of the last of them; if only the stages do, those that need it go early.
func (w *work) arrange(units []*unit) []*unit {
	w.findHolders(units)
	ordered := make([]*unit, 0, len(units)) // what is needed comes first
	for _, u := range units {
		u.leaves, u.leaving, u.departure = true, u.item.DeleteOrder, removeStage(u)
		// A record that was tampered with may hold a cycle. It is removed in
		// some order.
		cutCycles(u, &ordered)
	}
	w.forgetVisits()
	for _, u := range slices.Backward(ordered) {
		for _, need := range u.needs {
			need.leaving = max(need.leaving, u.leaving)
		}
	}
	for _, u := range ordered {
		for _, need := range u.needs {
			if need.leaving == u.leaving {
				u.departure = min(u.departure, need.departure)
			}
			need.neededBy = append(need.neededBy, u)
		}
	}
	ordered = slices.Clone(units)
	slices.SortStableFunc(ordered, func(a, b *unit) int {
		return cmp.Or(cmp.Compare(a.leaving, b.leaving), cmp.Compare(a.departure, b.departure))
	})
	return ordered
}

// findHolders finds, among the units, what each of them needs.
func (w *work) findHolders(units []*unit) {
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
			if need != nil && need != u && !slices.Contains(u.needs, need) {
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
			add(among[keyIn(reference)])
		}
	}
}

// findFormerNeeds finds what wanted objects needed when they were last written,
// if that is not wanted any more. It stays until they are written anew.
func (w *work) findFormerNeeds() {
	for _, u := range w.units {
		gone := u.live.Existence == Absent || u.live.Existence == Present && !u.isOurs()
		if u.desired == nil || gone || u.appliedOnce() {
			continue
		}
		for _, reference := range u.item.DependsOn {
			if need := w.byKey[keyIn(reference)]; need != nil && need.desired == nil {
				need.neededBy = append(need.neededBy, u)
			}
		}
	}
}

// keeper returns an object that must be gone, or written anew, before this one
// may be removed; nil if there is none.
func (u *unit) keeper() *unit {
	for _, other := range u.neededBy {
		if !other.dropped {
			return other
		}
	}
	return nil
}
