// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Whatever happens to a component, no step is taken on an object that is not
// recorded or not ours, none comes before its time, and no data is lost (the world
// and the oracle check every step). Once the world is healed, the component
// gets done in a bounded number of reconciles, stays done, and goes without a trace.
func TestComponentsSurviveTheirLife(t *testing.T) {
	misled := 0
	eachSeed(t, 1000, func(s *simulation) {
		s.live(func() {})
		s.heal()
		s.converge()
		s.checkApplied()
		s.checkAtRest()

		s.driver.cause = Deleting
		s.drawHooks()
		for range s.rng.IntN(4) {
			s.disturb()
			s.driver.events, s.driver.crashAt = 0, s.rng.IntN(8)
			s.reconcile()
		}
		s.heal()
		s.converge()
		s.checkDeleted()
		s.checkAtRest()
		misled += s.misled
	})
	t.Logf("%d reconciles received an old state", misled)
}

func (s *simulation) checkApplied() {
	s.t.Helper()
	for _, d := range s.driver.desired {
		if !s.oracle.settled(d) {
			s.fail("done, but %s is not settled", d.Key)
		}
	}
	if left := s.oracle.leftovers(); len(left) > 0 {
		s.fail("done, but %s is left over", left[0])
	}
	for _, d := range s.driver.desired {
		live := s.world.objects[d.Key]
		ignored := live != nil && ignores(d, live)
		// What is done may stay on record, so that it is not done again.
		if _, recorded := s.driver.item(d.Key); recorded == ignored && !(ignored && s.oracle.isDone(d)) {
			s.fail("done, but %s is on record: %t, ignored: %t", d.Key, recorded, ignored)
		}
	}
}

func (s *simulation) checkDeleted() {
	s.t.Helper()
	if len(s.driver.durable) > 0 {
		s.fail("deleted, but %s is recorded", KeyOf(s.driver.durable[0]))
	}
	if left := s.oracle.leftovers(); len(left) > 0 {
		s.fail("deleted, but %s is left over", left[0])
	}
	for key, o := range s.world.objects {
		if o.ownership.OwnerID == theOwner.ID && o.ownership.Ref == theOwner.Ref {
			s.fail("deleted, but %s has our label and annotation", key)
		}
	}
}

// checkAtRest finds steps and changes of the record when nothing has changed.
func (s *simulation) checkAtRest() {
	s.t.Helper()
	before, versions := s.driver.load(), s.world.versions
	s.driver.events = 0
	s.reconcile()
	if s.driver.events != 1 || s.world.versions != versions {
		s.fail("done, but there are steps")
	}
	if diff := cmp.Diff(before, s.driver.load()); diff != "" {
		s.fail("done, but the record changes:\n%s", diff)
	}
}

// fate is what became of a component at some point of its life.
type fate struct {
	State                []string
	Creations, Deletions map[string]int
}

func (s *simulation) fate() fate {
	f := fate{Creations: map[string]int{}, Deletions: map[string]int{}}
	for _, key := range s.world.keys() {
		o := s.world.objects[key]
		f.State = append(f.State, fmt.Sprintf("%s value=%s holder=%s owner=%s", key, o.value, o.holder, o.ownership.OwnerID))
	}
	for _, item := range s.driver.durable {
		f.State = append(f.State, fmt.Sprintf("recorded %s %s %s %s", KeyOf(item), item.Phase, item.Digest, item.Origin))
	}
	for key, n := range s.world.creations {
		f.Creations[key.String()] = n
	}
	for key, n := range s.world.deletions {
		f.Deletions[key.String()] = n
	}
	return f
}

// story is an install, an upgrade and a deletion, with a crash before the
// given event; zero means none. It returns what became of it after each, and
// the number of events.
func (s *simulation) story(crashAt int) (fates []fate, events int) {
	for _, key := range s.world.keys() {
		// Conflicts have no end, and are not the matter here.
		if o := s.world.objects[key]; o.holder != unheld || s.world.immutable[key] {
			s.world.remove(o)
		}
	}
	for key, set := range s.candidates {
		set.Adoption = v1alpha1.AdoptionPolicyIfUnowned
		s.candidates[key] = set
	}
	s.driver.crashAt = crashAt
	for range 2 {
		s.draw()
		s.converge()
		fates = append(fates, s.fate())
	}
	s.driver.cause = Deleting
	s.drawHooks()
	s.converge()
	s.checkDeleted()
	return append(fates, s.fate()), s.driver.events
}

// A crash at any point of an install, an upgrade and a deletion changes
// nothing about how they end, and no object is created or deleted once more
// for it: no Job runs twice.
func TestCrashesChangeNothing(t *testing.T) {
	crashes := 0
	eachSeed(t, 25, func(s *simulation) {
		want, events := s.story(0)
		for crashAt := range events {
			crashed := newSimulation(t, s.seed)
			got, _ := crashed.story(crashAt + 1)
			crashes++
			if diff := cmp.Diff(want, got); diff != "" {
				crashed.fail("a crash before event %d makes a difference (-without, +with):\n%s", crashAt+1, diff)
			}
		}
	})
	t.Logf("%d crashes", crashes)
}

// Two crashes, at random points.
func TestTwoCrashesChangeNothing(t *testing.T) {
	eachSeed(t, 200, func(s *simulation) {
		want, events := s.story(0)
		crashed := newSimulation(t, s.seed)
		first, second := 1+s.rng.IntN(events), 1+s.rng.IntN(events)
		reported := crashed.driver.observer
		crashed.driver.observer = func(p Plan, results []Result) {
			reported(p, results)
			if crashed.driver.events >= min(first, second) {
				crashed.driver.crashAt = max(first, second)
			}
		}
		got, _ := crashed.story(min(first, second))
		if diff := cmp.Diff(want, got); diff != "" {
			crashed.fail("crashes before events %d and %d make a difference (-without, +with):\n%s", first, second, diff)
		}
	})
}

// removals are the objects that a plan removes.
func removals(p Plan) []Key {
	var keys []Key
	for _, s := range p.Steps {
		if s.Verb == VerbDelete || s.Verb == VerbOrphan {
			keys = append(keys, s.Key)
		}
	}
	slices.SortFunc(keys, Key.Compare)
	return keys
}

// missing returns the first of the keys that is not among the others.
func missing(keys, others []Key) (Key, bool) {
	i := slices.IndexFunc(keys, func(k Key) bool { return !slices.Contains(others, k) })
	if i < 0 {
		return Key{}, false
	}
	return keys[i], true
}
