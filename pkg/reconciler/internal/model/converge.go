// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// maxRounds is how many reconciles a component may take to converge once
// nothing disturbs it: a few for each wave and stage of these small worlds.
const maxRounds = 16

// maxMoves bounds the requests of one round.
const maxMoves = 300

// converge lets all actors do their work, without any disturbance, until nothing changes any more,
// and checks the final State. Known holds the States that are known to converge; it adds to them.
// It returns the States on the way.
func (m *Model) converge(s *State, known map[uint64]bool, f *fingerprinter) (way []*State) {
	var met []uint64
	if len(s.late) > 0 {
		s = s.clone()
		s.late = nil // in the end all events come
	}
	for range maxRounds {
		id := f.of(m, s)
		if known[id] {
			break
		}
		met = append(met, id)
		before := len(way)
		s, way = m.round(s, way)
		if s.violation != "" {
			return way
		}
		if f.of(m, s) == id && !anyWrites(way[before:]) {
			m.checkRest(s)
			break
		}
		if len(met) == maxRounds {
			s = s.clone()
			s.violate("L1/L3 convergence: after %d passes there is still something to do", maxRounds)
			way = append(way, s)
		}
	}
	if s.violation == "" {
		for _, id := range met {
			known[id] = true
		}
	}
	return way
}

func anyWrites(way []*State) bool {
	return slices.ContainsFunc(way, func(s *State) bool { return s.writes > 0 })
}

// round makes one reconcile of every component, and lets the controllers do their work.
func (m *Model) round(s *State, way []*State) (*State, []*State) {
	count := 0
	move := func(mv Move) bool {
		s = m.Do(s, mv)
		if count++; count > maxMoves {
			s.violate("L1/L3 convergence: a reconcile does not end")
		}
		way = append(way, s)
		return s.violation == ""
	}
	for i := range s.actors {
		if s.actors[i].leader != s.active {
			continue
		}
		for first := true; first || s.actors[i].at != idle; first = false {
			moves := m.actorMoves(s, i, nil)
			if len(moves) == 0 {
				break
			}
			if !move(moves[0]) {
				return s, way
			}
		}
	}
	for {
		i := slices.IndexFunc(s.world.objects, func(o *Object) bool {
			return s.world.sweepable(o) || !o.Ready && !o.Deleting && !slices.Contains(m.Slow, o.Key)
		})
		if i < 0 {
			return s, way
		}
		kind := moveReady
		if s.world.sweepable(s.world.objects[i]) {
			kind = moveSweep
		}
		if !move(Move{Kind: kind, Arg: int8(i)}) {
			return s, way
		}
	}
}

// checkRest checks a State in which nothing changes any more. Each deviation needs an excuse.
func (m *Model) checkRest(s *State) {
	for i, c := range s.world.components {
		me := s.truth.uids[i]
		switch {
		case c == nil:
			m.checkLeftovers(s, me)
		case c.Deleting:
			if c.HasFinalizer && !m.excusedRemoval(s, c, nil) {
				s.violate("L2 deletion terminates: component %s is not gone, and nothing holds it", me)
			}
		default:
			m.checkDesired(s, c)
			m.checkPruned(s, c)
		}
	}
}

// checkLeftovers finds objects of components that are gone. Objects that show no owner cannot be
// found.
func (m *Model) checkLeftovers(s *State, me Holder) {
	if s.truth.finalizerRemoved[me] {
		return
	}
	for _, o := range s.world.objects {
		if m.holder(s, o) == me {
			s.violate("S11/L2 leftovers: component %s is gone, and %s is not deleted", me, o.Key)
		}
	}
}

// checkDesired checks that everything desired is there.
func (m *Model) checkDesired(s *State, c *Component) {
	excused := map[plan.Key]bool{}
	desired := slices.Clone(m.desired[c.UID][c.Version])
	slices.SortStableFunc(desired, func(a, b plan.Desired) int {
		return cmp.Or(int(a.Policies.Order.Apply)-int(b.Policies.Order.Apply), ranksOf[a.Key.Kind].apply-ranksOf[b.Key.Kind].apply)
	})
	for i, d := range desired {
		if _, recorded := itemOf(c.Inventory, d.Key); recorded && m.ignored(s, c.UID, d) && !m.isFinished(s, c.UID, d) {
			s.violate("S13 ignored objects: %s is not held by %s, which is to ignore it, and is on record", d.Key, c.UID)
		}
		if m.isSettled(s, c.UID, d) && m.ownerShown(s, c, d) {
			continue
		}
		behind := slices.ContainsFunc(desired[:i], func(x plan.Desired) bool { return excused[x.Key] })
		if behind || m.excused(s, c, d) {
			excused[d.Key] = true
			continue
		}
		s.violate("L1 stable: %s is desired by %s and not as desired, and nothing holds it up", d.Key, c.UID)
	}
}

// ownerShown reports whether an object that exists shows its owner.
func (m *Model) ownerShown(s *State, c *Component, d plan.Desired) bool {
	o := s.world.get(d.Key)
	return o == nil || o.Holder != c.UID || d.Policies.Reconcile == once || m.ignored(s, c.UID, d) || o.Ref.UID == ownerBy(c.UID).Ref.UID && o.OwnerID != ""
}

// excused reports whether there is a reason why a desired object is not as desired.
func (m *Model) excused(s *State, c *Component, d plan.Desired) bool {
	o := s.world.get(d.Key)
	if ns := s.world.get(namespaceOf(d.Key)); d.Key.Namespace != "" {
		if ns == nil && m.Missing != v1alpha1.MissingNamespacesPolicyCreate || ns != nil && ns.Deleting {
			return true
		}
	}
	switch {
	case o == nil:
		return false
	case o.Deleting:
		return o.Held || len(s.world.inside(o)) > 0
	case m.holder(s, o) == c.UID:
		if slices.Contains(m.Slow, d.Key) && !o.Ready {
			return true
		}
		recreates := d.Policies.Recreates()
		return slices.Contains(m.Fixed, d.Key) && !recreates || recreates && len(s.world.inside(o)) > 0
	case slices.Contains(m.Fixed, d.Key):
		return true // an object that is not ours is never recreated
	case m.records(s, c.UID, o):
		return true // it was ours
	case d.Policies.Adoption == v1alpha1.AdoptionPolicyAlways:
		return false
	case d.Policies.Adoption == v1alpha1.AdoptionPolicyNever:
		return true
	default:
		holder := m.holder(s, o)
		return holder != Unowned && !sameName(holder, c.UID)
	}
}

// checkPruned checks that nothing is left that is no longer desired.
func (m *Model) checkPruned(s *State, c *Component) {
	desired := m.desired[c.UID][c.Version]
	for _, o := range s.world.objects {
		isWanted := slices.ContainsFunc(desired, func(d plan.Desired) bool {
			return d.Key == o.Key || isNamespace(o.Key) && d.Key.Namespace == o.Key.Name
		})
		if m.holder(s, o) != c.UID || isWanted {
			continue
		}
		if _, recorded := itemOf(c.Inventory, o.Key); !recorded {
			s.violate("S4 inventory is complete: %s is held by %s and not recorded", o.Key, c.UID)
		}
		if !m.excusedRemoval(s, c, o) {
			s.violate("L11 prune: %s is not desired any more by %s, and nothing holds it", o.Key, c.UID)
		}
	}
}

// excusedRemoval reports whether something holds up the removal of an object, or of everything: a
// finalizer, content of other owners, or a write that cannot be made.
func (m *Model) excusedRemoval(s *State, c *Component, o *Object) bool {
	for _, item := range c.Inventory {
		x := s.world.get(plan.KeyOf(item))
		if x != nil && (x.Deleting && x.Held || s.world.inUse(x, c.UID)) {
			return true
		}
	}
	if o == nil {
		return false
	}
	for _, d := range m.desired[c.UID][c.Version] {
		item, _ := itemOf(c.Inventory, o.Key)
		if d.Policies.Order.Apply <= item.ApplyOrder && m.excused(s, c, d) && !slices.Contains(m.Slow, d.Key) {
			return true
		}
	}
	return false
}
