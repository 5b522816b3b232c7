// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// foreseen answers the questions of a forecast about a world as a server answers dry runs
// and guards read: from what the world is now, and from the steps before.
func (w *world) foreseen() func(ForecastStep) Answer {
	exists := maps.Clone(w.objects)
	return func(s ForecastStep) (known Answer) {
		o := exists[s.Key]
		if s.Verb != VerbDelete || s.Key.isNamespace() || len(s.ItemAfter.Defines) > 0 {
			known = w.foresee(s, o, exists)
		}
		switch {
		case known.Failure != nil || s.Verb == VerbDryRun:
		case s.Verb == VerbCreate:
			exists[s.Key] = &object{key: s.Key, uid: assumed}
		case s.Verb == VerbDelete && !known.Orphaned:
			delete(exists, s.Key)
		}
		return known
	}
}

func (w *world) foresee(s ForecastStep, o *object, exists map[Key]*object) (known Answer) {
	among := func(in func(*object) bool) (found []*object) {
		for _, other := range exists {
			if in(other) && other.key != s.Key {
				found = append(found, other)
			}
		}
		return found
	}
	refuse := func(found []*object) Answer {
		if len(found) > 0 && s.Guard.AllowsOrphan() {
			return Answer{Orphaned: true}
		} else if len(found) > 0 {
			return Answer{Failure: &Failure{Blocked: true, Message: "objects of others exist"}}
		}
		return Answer{}
	}
	switch s.Verb {
	case VerbDelete:
		switch s.Guard {
		case GuardNoInstances, GuardNoInstancesElseOrphan:
			found := among(func(x *object) bool { return o.definesType(x.key.GroupKind()) })
			if slices.ContainsFunc(found, func(x *object) bool { return !slices.Contains(s.ItemAfter.Kept, x.uid) }) {
				s.Guard = GuardNoInstances
			}
			return refuse(found)
		case GuardEmpty, GuardEmptyElseOrphan, GuardKnownEmptyElseOrphan:
			return refuse(among(func(x *object) bool { return x.key.Namespace == s.Key.Name }))
		}
	case VerbCreate, VerbReplace, VerbMerge, VerbOverride:
		if s.Verb == VerbCreate && s.Key.Namespace != "" && exists[namespaceKey(s.Key.Namespace)] == nil {
			return Answer{Failure: &Failure{Message: errNoNamespace.Error()}}
		}
		in := Input{Live: map[Key]Observation{}, Owner: theOwner, Now: w.now}
		changes := true
		if s.Verb != VerbCreate && s.First {
			in.Live[s.Key] = o.observation(true)
			if w.frozen[s.Key] || w.immutable[s.Key] && o.value != valueOf(s.Step) {
				return Answer{Failure: &Failure{Immutable: true, Message: errImmutable.Error()}}
			}
			after := *o // an object that loses only what others added stays ready
			after.value, after.ownership.OwnerID, after.ownership.Ref = valueOf(s.Step), theOwner.ID, theOwner.Ref
			changes = after.observation(true).ObservedHash != o.observation(true).ObservedHash
		}
		known.Observation = in.assumedAfter(s)
		if known.Observation.Status = firstStatus(s.Key); !changes {
			known.Observation.Status = o.status
		}
	}
	return known
}

func forecast(s *story, _ []string, _ []line) (string, error) {
	in := s.driver.input()
	live, recorded := maps.Clone(in.Live), s.driver.load()
	f, err := NewForecast(in, s.world.foreseen())
	if err != nil {
		return "error    " + err.Error() + "\n", nil
	}
	if !reflect.DeepEqual(live, in.Live) || !reflect.DeepEqual(recorded, in.Recorded) || len(in.Failed)+len(in.DryRunAccepted) > 0 {
		return "", errors.New("the forecast changed its input")
	}
	return f.String(), nil
}

// A function that lets an object change for ever gets an error that names it.
func TestAForecastEnds(t *testing.T) {
	d := desiredObject(Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}, "1", policy.Set{
		Adoption: v1alpha1.AdoptionPolicyIfUnowned, Reconcile: v1alpha1.ReconcilePolicyOnObjectChange, Update: v1alpha1.UpdatePolicyReplace,
	})
	in := Input{Name: reconcilerName, Owner: theOwner, Desired: []Desired{d}, Live: map[Key]Observation{d.Key: {Existence: Absent}}, Now: startOfTime}
	_, err := NewForecast(in, func(ForecastStep) Answer { return Answer{Observation: Observation{Existence: Absent}} })
	want := "what becomes of the objects cannot be said, because there is no end to the changes of ConfigMap shop/a"
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}
