// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// batches are the writes of plans, as sets.
type batches []map[string]bool

func (b *batches) add(steps []Step) {
	batch := map[string]bool{}
	for _, s := range steps {
		batch[string(s.Verb)+" "+s.Key.String()] = true
	}
	*b = append(*b, batch)
}

// calm ends what a forecast cannot know beforehand: answers and labels that get lost, what
// the watch reports too late, what a webhook refuses or removes, and finalizers that stay.
// What others own, what drifted, what cannot be read and what has failed stays.
func (s *simulation) calm() {
	s.driver.crashAt, s.driver.readsAll = 0, true
	s.oracle.dropUnknowable()
	w := s.world
	w.refused, w.lost, w.strips, w.late = map[Key]string{}, map[Key]bool{}, map[Key]bool{}, map[Key]Observation{}
	for _, key := range w.keys() {
		if o := w.objects[key]; o != nil {
			o.finalizers = nil
		}
	}
	w.finish()
	w.settle() // otherwise objects get ready that the forecast does not wait for
}

// settle lets the world do what a forecast assumes: objects get ready, unless they have failed.
func (w *world) settle() {
	for _, o := range w.objects {
		if o.deleting.IsZero() && !w.unready[o.key] && (o.status.Readiness == NotReady || o.status.Readiness == ReadinessUnknown) {
			o.status = Status{Readiness: Ready}
			w.touch(o)
		}
	}
}

// follow reconciles until nothing happens any more, and returns the writes. A step that
// fails is tried again in every reconcile, and counts once.
func (s *simulation) follow() (done batches, last Plan, unknowable string) {
	s.t.Helper()
	failed := map[string]bool{}
	written := s.driver.observer
	defer func() { s.driver.observer = written }()
	s.driver.observer = func(p Plan, results []Result) {
		written(p, results)
		if len(results) == 0 {
			last = p
			return
		}
		var steps []Step
		for _, r := range results {
			name := string(r.Step.Verb) + " " + r.Step.Key.String()
			if !failed[name] {
				steps = append(steps, r.Step)
			}
			failed[name] = r.Err != nil || r.Blocked != ""
			if r.Step.Verb == VerbDelete && r.Err == nil && r.Observation.NotServed {
				unknowable = "after a deletion it is not known whether the object is gone, because its type is not served for a moment"
			}
		}
		if len(steps) > 0 {
			done.add(steps)
		}
	}
	for idle, rounds := 0, 0; idle < 2; rounds++ {
		if rounds > 100 {
			s.fail("no end after %d reconciles", rounds)
		}
		before := len(done)
		s.reconcile()
		s.world.settle()
		if idle++; len(done) > before {
			idle = 0
		}
	}
	return done, last, unknowable
}

// expect compares what a forecast says with what happens. It returns false if they cannot be
// compared.
func (s *simulation) expect() bool {
	s.t.Helper()
	s.calm()
	in := s.driver.input()
	live, recorded := maps.Clone(in.Live), s.driver.load()
	f, err := NewForecast(in, s.world.foreseen())
	if err != nil {
		s.fail("%v", err)
	}
	s.note("the forecast is\n%s", f)
	if !reflect.DeepEqual(live, in.Live) || !reflect.DeepEqual(recorded, in.Recorded) || len(in.Failed)+len(in.DryRunAccepted) > 0 {
		s.fail("the forecast changed its input")
	}
	var said batches
	for _, batch := range f.Batches {
		steps := make([]Step, len(batch.Steps))
		for i, step := range batch.Steps {
			steps[i] = step.Step
		}
		said.add(steps)
	}
	hidden := slices.ContainsFunc(s.world.keys(), func(key Key) bool { return in.Live[key].NotServed })
	for _, item := range in.Recorded {
		desired := slices.ContainsFunc(in.Desired, func(d Desired) bool { return d.Key == KeyOf(item) })
		hidden = hidden || live[KeyOf(item)].NotServed && !desired
	}
	done, last, unknowable := s.follow()
	if hidden {
		unknowable = "whether an object exists is not known, because its type is not served at the moment"
	}
	if unknowable != "" {
		s.note("%s", unknowable)
		return false
	}
	if diff := cmp.Diff(said, done); diff != "" {
		s.fail("the forecast is wrong (-said, +done):\n%s", diff)
	}
	reasons := func(waiting []Wait) []string {
		var all []string
		for _, wait := range waiting {
			all = append(all, wait.Key.String()+" "+string(wait.Reason))
		}
		return all
	}
	if diff := cmp.Diff(reasons(f.Waiting), reasons(last.Waiting)); diff != "" {
		s.fail("the forecast waits for something else at the end (-said, +done):\n%s", diff)
	}
	return true
}

// In every state of a component, the forecast is what happens if nothing disturbs it.
func TestAForecastIsWhatHappens(t *testing.T) {
	compared, total := 0, 0
	expect := func(s *simulation) {
		t.Helper()
		if total++; s.expect() {
			compared++
		}
	}
	eachSeed(t, 250, func(s *simulation) {
		s.live(func() {})
		expect(s)
		s.draw()
		expect(s)
		s.driver.cause = Deleting
		s.drawHooks()
		expect(s)
	})
	t.Logf("compared %d of %d forecasts", compared, total)
	if total > 100 && compared < total*95/100 {
		t.Errorf("only %d of %d forecasts were compared", compared, total)
	}
}

func forecast(s *story, _ []string, _ []line) (string, error) {
	f, err := NewForecast(s.driver.input(), s.world.foreseen())
	if err != nil {
		return "error    " + err.Error() + "\n", nil
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
