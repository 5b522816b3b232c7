// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// inputs calls the function with the inputs of plans from all over the lives
// of components: before every reconcile, while it is installed, changed, disturbed and deleted.
func (s *simulation) inputs(look func(in Input)) {
	s.live(func() { look(s.driver.input()) })
	s.driver.cause = Deleting
	s.drawHooks()
	for range 3 {
		s.disturb()
		look(s.driver.input())
		s.reconcile()
	}
}

func (s *simulation) next(in Input) Plan {
	s.t.Helper()
	p, err := Next(in)
	if err != nil {
		s.fail("%v", err)
	}
	return p
}

// The same input gives the same plan, in whatever order its lists are, and
// planning leaves the input as it was.
func TestPlansAreAFunctionOfTheirInput(t *testing.T) {
	eachSeed(t, 200, func(s *simulation) {
		s.inputs(func(in Input) {
			recorded, live := s.driver.load(), maps.Clone(in.Live)
			want := s.next(in)
			if diff := cmp.Diff(recorded, in.Recorded); diff != "" {
				s.fail("planning changed the record it got:\n%s", diff)
			}
			if diff := cmp.Diff(live, in.Live); diff != "" {
				s.fail("planning changed the observations it got:\n%s", diff)
			}
			in.Desired, in.Recorded, in.ManagedTypes = slices.Clone(in.Desired), slices.Clone(in.Recorded), slices.Clone(in.ManagedTypes)
			s.rng.Shuffle(len(in.Desired), func(i, j int) { in.Desired[i], in.Desired[j] = in.Desired[j], in.Desired[i] })
			s.rng.Shuffle(len(in.Recorded), func(i, j int) { in.Recorded[i], in.Recorded[j] = in.Recorded[j], in.Recorded[i] })
			s.rng.Shuffle(len(in.ManagedTypes), func(i, j int) { in.ManagedTypes[i], in.ManagedTypes[j] = in.ManagedTypes[j], in.ManagedTypes[i] })
			if diff := cmp.Diff(want, s.next(in)); diff != "" {
				s.fail("the order of the input makes a difference:\n%s", diff)
			}
		})
	})
}

// Losing information never adds a removal, and never drops an object from the record.
func TestUnknownIsNeverAReasonToRemove(t *testing.T) {
	eachSeed(t, 200, func(s *simulation) {
		s.inputs(func(in Input) {
			informed := s.next(in)
			for _, lost := range s.losses(in) {
				poor := in
				poor.Live = maps.Clone(in.Live)
				for _, key := range lost {
					poor.Live[key] = Observation{Message: "the server is busy", NotServed: s.chance(30) && !builtin[key.Group]}
				}
				blind := s.next(poor)
				if key, added := missing(removals(blind), removals(informed)); added {
					s.fail("not knowing %s removes %s:\n%s\ninstead of:\n%s", lost, key, blind, informed)
				}
				kept := slices.DeleteFunc(keysOf(informed.Inventory), func(k Key) bool {
					_, recorded := s.driver.item(k)
					return !recorded
				})
				if key, dropped := missing(kept, keysOf(blind.Inventory)); dropped {
					s.fail("not knowing %s drops %s:\n%s\ninstead of:\n%s", lost, key, blind, informed)
				}
				for _, key := range removals(blind) {
					if slices.Contains(lost, key) {
						s.fail("%s is removed although it could not be read", key)
					}
				}
			}
		})
	})
}

// losses are sets of keys to lose: each one, and a few of many.
func (s *simulation) losses(in Input) [][]Key {
	keys := slices.SortedFunc(maps.Keys(in.Live), Key.Compare)
	var losses [][]Key
	for _, key := range keys {
		losses = append(losses, []Key{key})
	}
	for range 5 {
		losses = append(losses, slices.DeleteFunc(slices.Clone(keys), func(Key) bool { return s.chance(50) }))
	}
	return losses
}

// The clock decides about readiness and refreshes. It never adds a removal:
// a later time may only put one off, behind a refresh.
func TestTheClockRemovesNothing(t *testing.T) {
	eachSeed(t, 300, func(s *simulation) {
		s.inputs(func(in Input) {
			for key, o := range in.Live {
				if o.Status.Readiness == ReadinessUnknown {
					o.Status = Status{Readiness: Ready} // that one depends on the time, and should
					in.Live[key] = o
				}
			}
			in.Now = startOfTime.Add(-time.Hour)
			early := removals(s.next(in))
			for _, later := range []time.Duration{0, time.Minute, time.Hour, 1e6 * time.Hour} {
				in.Now = startOfTime.Add(later)
				if key, added := missing(removals(s.next(in)), early); added {
					s.fail("%s is removed only because it is %s", key, in.Now)
				}
			}
		})
	})
}

// Steps that were computed from an older state of the world are refused, or do
// no harm: nothing of others is touched, nothing is lost, and no object is
// created that exists.
func TestStaleStepsDoNoHarm(t *testing.T) {
	eachSeed(t, 500, func(s *simulation) {
		s.live(func() {})
		if s.chance(40) {
			s.driver.cause = Deleting
		}
		stale := s.next(s.driver.input())
		if stale.MustRecord {
			s.driver.durable = stale.Inventory
		}
		s.note("stale: %s", stale)
		for range 1 + s.rng.IntN(8) {
			s.disturb()
		}
		if s.chance(50) {
			s.reconcile() // another process was quicker
		}
		for _, step := range stale.Steps {
			existed := s.world.objects[step.Key]
			version := 0
			if existed != nil {
				version = existed.version
			}
			r := s.world.execute(step)
			s.note("%s %s: %v", step.Verb, step.Key, r.Err)
			if step.Verb == VerbCreate && existed != nil && existed.version != version {
				s.fail("create %s changed the object that was there", step.Key)
			}
		}
		s.verify()
	})
}

// An inventory that was tampered with gives no power over the objects of
// others: the objects themselves must show who owns them.
func TestAForgedRecordIsNoAuthority(t *testing.T) {
	eachSeed(t, 300, func(s *simulation) {
		s.live(func() {})
		if s.chance(50) {
			s.driver.cause = Deleting
		}
		for _, key := range s.world.keys() {
			o := s.world.objects[key]
			if o.holder == heldByUs || s.chance(30) {
				continue
			}
			forged := v1alpha1.InventoryItem{
				Group: key.Group, Version: "v1", Kind: key.Kind, Namespace: key.Namespace, Name: key.Name,
				Digest: "forged", ObservedHash: "forged", AppliedHash: "forged", Seal: pick(s, "", "forged", "seal of another owner for "+string(o.uid)),
				Phase:  pick(s, v1alpha1.PhaseApplied, v1alpha1.PhaseCompleting, v1alpha1.PhaseCompleted, v1alpha1.PhaseRecreating, v1alpha1.PhaseReleased),
				Origin: pick(s, v1alpha1.OriginManifest, v1alpha1.OriginNamespace),
			}
			if s.chance(80) {
				forged.UID = o.uid
			}
			s.note("forged %s %s", key, forged.Phase)
			s.driver.durable = append(s.driver.durable, forged)
		}
		s.reconcile()
		s.reconcile()
	})
}
