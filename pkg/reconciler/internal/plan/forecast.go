// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/internal/report"
)

// Forecast is all the work that is left, not only the next batch of it.
type Forecast struct {
	// Batches are in the order in which they are executed.
	Batches []Batch
	// After are the objects that have to become ready, or to be gone, after the last batch.
	After []Wait
	// Waiting are the objects that are not settled at the end, and why. Nothing in the forecast
	// settles them.
	Waiting []Wait
	// Notes are the notes of all plans.
	Notes []Note
	// Deviations and Ignored are the lists of the last plan.
	Deviations []Deviation
	Ignored    []Key
}

// Batch is the steps of one plan.
type Batch struct {
	// After are the objects that are waited for before the batch starts. Without any, it
	// follows the batch before at once.
	After []Wait
	// Steps are ordered by stage. Steps that wait for a failure in an earlier stage are left out.
	Steps []ForecastStep
}

// ForecastStep is a step and its expected result.
type ForecastStep struct {
	Step
	Answer
	// First: the object is as the step sees it, because no step before is about it.
	First bool
}

// Answer is the known outcome of a step that is not executed.
type Answer struct {
	// Failure is why the step is not completed; nil if it is.
	Failure *Failure
	// Orphaned: the guard lets the object be orphaned instead of deleted.
	Orphaned bool
	// Observation is the state of the object after the step. If it is Unknown, the step is assumed
	// to succeed.
	Observation Observation
}

// maxMoves bounds how often one object is changed in a forecast, by a step or by itself. A
// recreation after a refused update takes six.
const maxMoves = 16

// NewForecast asks for the next plan again and again, and assumes that everything goes well: writes
// are accepted, objects become ready, a deleted object ends in its absence, a type is served once
// its definition is ready. Objects that are waited for at the same time become ready at the same
// time. Time does not pass: neither a reapply nor the correction of an object in conflict becomes
// due. The function answer returns better knowledge about a step, the same for the same step.
//
// The input is not changed. An error means that the input contradicts itself, or names the objects
// that would be changed for ever.
func NewForecast(in Input, answer func(ForecastStep) Answer) (Forecast, error) {
	in.Live = maps.Collect(maps.All(in.Live))
	in.Failed = maps.Collect(maps.All(in.Failed))
	in.DryRunAccepted = maps.Collect(maps.All(in.DryRunAccepted))
	f := forecaster{in: in, answer: answer, noted: map[Note]bool{}, touched: map[Key]bool{}, moves: map[Key]int{}, tried: map[Attempt]bool{}}
	for idle := 0; ; {
		next, err := Next(f.in)
		if err != nil {
			return Forecast{}, err
		}
		for _, note := range next.Notes {
			if !f.noted[note] {
				f.noted[note] = true
				f.result.Notes = append(f.result.Notes, note)
			}
		}
		moved := len(next.Steps) > 0
		if moved {
			f.execute(next)
		} else {
			// A change of the record may release further objects.
			changed := !next.Done() && !reflect.DeepEqual(f.in.Recorded, next.Inventory)
			f.in.Recorded = next.Inventory
			moved = f.progress(next.Waiting) || changed && idle < maxMoves
			if moved || f.succeeded {
				// The next call of the engine retries failed steps.
				moved = moved || len(f.in.Failed) > 0
				f.in.Failed, f.in.DryRunAccepted, f.retried, f.succeeded = map[Key]Failure{}, map[Key]bool{}, false, false
			}
		}
		if idle++; len(next.Steps) > 0 {
			idle = 0
		}
		if err := f.checkEnd(); err != nil {
			return Forecast{}, err
		}
		if !moved {
			f.result.Waiting, f.result.Deviations, f.result.Ignored = next.Waiting, next.Deviations, next.Ignored
			return f.result, nil
		}
	}
}

type forecaster struct {
	in      Input
	answer  func(ForecastStep) Answer
	result  Forecast
	noted   map[Note]bool
	touched map[Key]bool // by steps
	moves   map[Key]int
	retried bool // as by the caller of DropResolvedFailures
	// tried are the steps that change nothing if they are tried again: failed steps and dry runs.
	// succeeded is set if another step was executed since the failed steps were tried last.
	tried     map[Attempt]bool
	succeeded bool
	// mended: a configuration of webhooks was changed, so steps that failed because of a webhook
	// may succeed.
	mended bool
}

// execute assumes the outcome of a plan's steps.
func (f *forecaster) execute(p Plan) {
	batch := Batch{After: f.result.After}
	var results []Result
	failed := false
	for i, s := range p.Steps {
		if i > 0 && s.Stage != p.Steps[i-1].Stage && failed {
			break
		}
		step := ForecastStep{Step: s, First: !f.touched[s.Key]}
		step.Answer = f.answer(step)
		if f.mended && step.Failure != nil && step.Failure.Webhook != "" {
			step.Failure = nil
		}
		again := f.tried[s.Attempt()]
		if step.Failure != nil || s.Verb == VerbDryRun {
			f.tried[s.Attempt()] = true
		}
		if step.Failure != nil {
			f.in.Failed[s.Key] = *step.Failure
			if failed = true; !again {
				batch.Steps = append(batch.Steps, step)
			}
			continue
		}
		batch.Steps = append(batch.Steps, step)
		f.moves[s.Key]++
		f.succeeded = f.succeeded || !again
		f.mended = f.mended || s.Verb != VerbDryRun && IsWebhookConfiguration(s.Key.GroupKind())
		f.touched[s.Key] = f.touched[s.Key] || s.Verb != VerbDryRun
		result := Result{Step: s, Orphaned: step.Orphaned, Observation: step.Observation}
		if result.Observation.Existence == Unknown {
			result.Observation = f.in.assumedAfter(step)
		}
		results = append(results, result)
		if s.Verb == VerbDryRun {
			f.in.DryRunAccepted[s.Key] = true
		} else {
			delete(f.in.Failed, s.Key)
		}
	}
	if len(batch.Steps) > 0 {
		f.result.After = nil
		f.result.Batches = append(f.result.Batches, batch)
	}
	f.in.Recorded = Fold(p.Inventory, f.in.Live, results, metav1.NewTime(f.in.Now))
	f.retried = f.retried || DropResolvedFailures(f.in, results)
}

// assumed stands for a value that is not known yet: a uid, a version, a hash.
const assumed = "assumed"

// assumedAfter returns the object as a step leaves it if it succeeds.
func (in Input) assumedAfter(step ForecastStep) Observation {
	live := in.Live[step.Key]
	switch {
	case step.Verb == VerbDelete && !step.Orphaned && len(live.Finalizers) == 0:
		return Observation{Existence: Absent}
	case step.Verb == VerbDelete && !step.Orphaned:
		live.DeletionTimestamp = in.Now
		return live
	case step.Verb == VerbDelete, step.Verb == VerbOrphan:
		live.Ownership.OwnerID, live.Ownership.Ref = "", OwnerRef{}
		return live
	case step.Verb == VerbMark:
		live.Ownership.OwnerID, live.Ownership.Ref = in.Owner.ID, in.Owner.Ref
		return live
	case step.Verb == VerbCreate:
		live = Observation{Existence: Present, UID: assumed, CreationTimestamp: in.Now}
	}
	live.ResourceVersion, live.ObservedHash, live.AppliedHash = assumed, assumed, assumed
	live.Ownership = Ownership{OwnerID: in.Owner.ID, Ref: in.Owner.Ref}
	live.Drift, live.Deferred, live.Differs = nil, false, false
	live.Status = Status{Message: "was just written"}
	return live
}

// progress ends the waits that the known state allows to end, and reports whether there were any.
func (f *forecaster) progress(waiting []Wait) bool {
	moved := map[Key]bool{}
	for _, wait := range waiting {
		moved[wait.Key] = f.settle(wait)
	}
	maps.Copy(moved, f.serveTypes())
	any := false
	for _, wait := range waiting {
		if moved[wait.Key] {
			f.moves[wait.Key]++
			any = true
			wait.Until = time.Time{} // it is not waited for that long
			if wait.Reason == report.WaitGone && f.touched[wait.Key] {
				wait.Message = "is being deleted" // when that began is not known yet
			}
			if wait.Reason != report.WaitOrder { // the state of another object follows
				f.result.After = append(f.result.After, wait)
			}
		}
	}
	return any
}

// settle ends the wait for one object, if the forecast assumes that it ends.
func (f *forecaster) settle(wait Wait) bool {
	live := f.in.Live[wait.Key]
	switch wait.Reason {
	case report.WaitReady:
		live.Status = Status{Readiness: Ready}
		if live.Finish == Unfinished {
			live.Finish = FinishComplete
		}
		f.in.Live[wait.Key] = live
		return true
	case report.WaitGone:
		f.remove(wait.Key)
		return true
	case report.WaitNamespaceGone:
		f.remove(namespaceKey(wait.Key.Namespace))
		return true
	}
	return false
}

// serveTypes makes the objects absent whose type was not served and has a definition that is
// ready now, and returns them.
func (f *forecaster) serveTypes() map[Key]bool {
	served := map[Key]bool{}
	for key, live := range f.in.Live {
		if live.NotServed && f.definesReady(key) {
			f.in.Live[key] = Observation{Existence: Absent}
			served[key] = true
		}
	}
	return served
}

// remove makes an object absent; a namespace takes its objects along.
func (f *forecaster) remove(key Key) {
	f.in.Live[key] = Observation{Existence: Absent}
	if !isNamespace(key) {
		return
	}
	for inside := range f.in.Live {
		if inside.Namespace == key.Name {
			f.in.Live[inside] = Observation{Existence: Absent}
		}
	}
}

// definesReady reports whether one of our objects, or a shared one, defines the type of the object, and is ready.
func (f *forecaster) definesReady(key Key) bool {
	return slices.ContainsFunc(f.in.Desired, func(d Desired) bool {
		live := f.in.Live[d.Key]
		return Covers(d.Defines, key.GroupKind()) && live.Existence == Present && live.DeletionTimestamp.IsZero() && live.Status.Readiness == Ready && (d.Shared || f.in.Owner.Owns(live.Ownership))
	})
}

// checkEnd returns an error if an object is changed again and again.
func (f *forecaster) checkEnd() error {
	var names []string
	for key, moves := range f.moves {
		if moves > maxMoves {
			names = append(names, key.String())
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return errors.New("what becomes of the objects cannot be said, because there is no end to the changes of " + strings.Join(names, ", "))
}
