// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// beforePrune checks that what is written before the object goes is there; only
// a Service may go first, if one cannot be created because a value is already allocated.
func (o *oracle) beforePrune(s Step, item v1alpha1.InventoryItem) {
	if o.driver.cause == Deleting {
		return
	}
	lacks := func(d Desired) bool {
		return d.Policies.Order.Apply <= item.ApplyOrder && o.driver.world.objects[d.Key] == nil && !o.isDone(d)
	}
	i := slices.IndexFunc(o.driver.desired, lacks)
	if i < 0 {
		return
	}
	frees := s.Verb == VerbDelete && s.Key.Kind == "Service" && slices.ContainsFunc(o.driver.desired, func(d Desired) bool {
		value, _, _ := valueIn(d)
		return d.Key.Kind == "Service" && lacks(d) && o.driver.world.clashesWith(d.Key, value)
	})
	if !frees {
		o.driver.world.violate("%s %s: %s is not there yet", s.Verb, s.Key, o.driver.desired[i].Key)
	}
}

// serve makes one Service with a fixed port part of the component.
func (s *simulation) serve(name string) {
	key, err := keyOf("Service", name)
	if err != nil {
		s.t.Fatal(err)
	}
	policies := defaultPolicies()
	policies.Order.Apply = pick[int16](s, -1, 0, 1)
	s.driver.desired = append(s.driver.desired, desiredObject(key, "port-80", policies))
	s.note("desired %s in wave %d", key, policies.Order.Apply)
}

// A Service gets the port of another one, in whatever component, waves and
// weather: they do not wait for each other forever, no reconcile goes on and on, and
// nothing is deleted too early.
func TestARenamedServiceGetsItsPort(t *testing.T) {
	renamed, first := 0, 0
	eachSeed(t, 300, func(s *simulation) {
		s.draw()
		s.serve("shop/front")
		s.heal()
		s.converge()
		s.driver.before = func(step Step) {
			s.oracle.before(step)
			if step.Verb == VerbDelete && step.Key.Name == "front" && s.world.objects[Key{Kind: "Service", Namespace: "shop", Name: "back"}] == nil {
				first++
			}
		}
		// Nothing else goes: what goes before it by the order of removal would
		// wait for the writes, and it for that.
		s.driver.desired = slices.DeleteFunc(s.driver.desired, func(d Desired) bool { return d.Key.Name == "front" })
		s.serve("shop/back")
		for range s.rng.IntN(4) {
			s.disturb()
			s.driver.events, s.driver.crashAt = 0, s.rng.IntN(8)
			s.reconcile()
		}
		s.heal()
		s.converge()
		s.checkApplied()
		s.checkAtRest()
		renamed++
	})
	t.Logf("%d times renamed, %d times the old one went first", renamed, first)
}
