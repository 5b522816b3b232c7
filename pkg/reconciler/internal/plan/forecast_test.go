// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// foreseen answers the questions of a forecast: a copy of the world executes the steps, and its controllers do their work in
// between. The copy has the violations of these steps.
func (w *world) foreseen() (copied *world, answer func(ForecastStep) Answer) {
	same := *w
	copied = &same
	copied.objects, copied.accepted, copied.lost, copied.left, copied.violations = map[Key]*object{}, map[Key]bool{}, nil, nil, nil
	for key, o := range w.objects {
		same := *o
		copied.objects[key] = &same
	}
	return copied, func(s ForecastStep) Answer {
		in := Input{Live: map[Key]Observation{}, Owner: theOwner, Now: w.now}
		copied.progress()
		if o := copied.objects[s.Key]; o != nil {
			// The forecast assumes uids and versions that it does not know.
			s.UID, s.ResourceVersion = o.uid, strconv.Itoa(o.version)
			in.Live[s.Key] = o.observation(true)
		}
		r := copied.execute(s.Step)
		switch {
		case r.Blocked != "":
			return Answer{Failure: &Failure{Blocked: true, Message: "objects of others exist"}}
		case r.Err != nil:
			return Answer{Failure: &Failure{Immutable: errors.Is(r.Err, errImmutable), Message: r.Err.Error()}}
		case s.Verb == VerbDelete || s.Verb == VerbDryRun:
			return Answer{Orphaned: r.Orphaned}
		}
		known := Answer{Observation: in.assumedAfter(s)}
		known.Observation.Status = r.Observation.Status
		return known
	}
}

func forecast(d *driver, _ []string, _ []line) (string, error) {
	in := d.input()
	live, recorded := maps.Clone(in.Live), d.load()
	copied, answer := d.world.foreseen()
	f, err := NewForecast(in, answer)
	for _, violation := range copied.violations {
		// The uid and version of a step are not its own.
		if !strings.Contains(violation, "has a precondition") {
			return "", errors.New(violation)
		}
	}
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

// String returns the forecast as text, one line for each step, wait and note.
func (f Forecast) String() string {
	var b strings.Builder
	waits := func(title string, waiting []Wait) {
		for _, wait := range waiting {
			fmt.Fprintf(&b, "%-8s %s: %s: %s\n", title, wait.Key, wait.Reason, wait.Message)
		}
	}
	for i, batch := range f.Batches {
		waits("until", batch.After)
		fmt.Fprintf(&b, "batch %d\n", i+1)
		for _, s := range batch.Steps {
			fmt.Fprintf(&b, "%-8s %s: %s", s.Verb, s.Key, s.Reason)
			if s.Guard != GuardNone {
				fmt.Fprintf(&b, " (if %s)", s.Guard)
			}
			if s.Failure != nil {
				fmt.Fprintf(&b, ": fails: %s", s.Failure.Message)
			}
			b.WriteByte('\n')
		}
	}
	waits("until", f.After)
	waits("wait", f.Waiting)
	for _, note := range f.Notes {
		fmt.Fprintf(&b, "note     %s: %s\n", note.Key, note.Message)
	}
	if b.Len() == 0 {
		return "done\n"
	}
	return b.String()
}
