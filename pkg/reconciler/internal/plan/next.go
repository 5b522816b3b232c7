// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// Next returns the next batch of work that brings the cluster closer to the desired objects, or,
// when Deleting, removes the recorded objects. It is a pure function: the same input gives the same
// plan, whatever the order of its lists. Call it again after the batch was executed and folded.
//
// An error means that the input contradicts itself; nothing may be done then.
func Next(in Input) (Plan, error) {
	w, err := newWork(in)
	if err != nil {
		return Plan{}, err
	}
	if in.Cause == Applying {
		w.findDeadWebhooks(ReasonRedundant)
		w.addNamespaces(w.units)
		w.applyWaves(w.desiredFor(policy.RunOnApply))
		w.prune()
	} else {
		w.findDeadWebhooks(ReasonDeleting)
		w.delete()
	}
	return w.plan(), nil
}

type work struct {
	in    Input
	units []*unit // ordered by key
	byKey map[Key]*unit

	steps   []Step
	waiting []Wait
	notes   []Note
	// ignored are objects of other owners that count as ready.
	ignored []Key
	// retained are recorded objects that are not desired and stay.
	retained []Key
	// deviations are drifted objects that are not repaired.
	deviations []Deviation
	// firstUnwritten is the first apply wave with a write that is outstanding,
	// failed, refused or held back.
	firstUnwritten int
	// allocated is, by kind, the first wave in which a creation is refused because
	// something that the object asks for, such as a port, is already allocated.
	allocated map[schema.GroupKind]int
	// firstMoving is the first wave with a write that is outstanding for another
	// reason than a failure.
	firstMoving int
	// recordFirst is set when a step needs a phase that is not recorded yet.
	recordFirst bool
	// deletionDone is set when nothing of a deletion is left to do.
	deletionDone bool
}

// newWork merges desired, recorded and live state into one unit per object.
func newWork(in Input) (*work, error) {
	w := &work{
		in:             in,
		units:          make([]*unit, 0, len(in.Desired)+len(in.Recorded)),
		byKey:          make(map[Key]*unit, len(in.Desired)+len(in.Recorded)),
		firstUnwritten: math.MaxInt,
		allocated:      map[schema.GroupKind]int{},
		firstMoving:    math.MaxInt,
	}
	var mistakes []error
	for _, item := range in.Recorded {
		key := KeyOf(item)
		if _, twice := w.byKey[key]; twice {
			// The record was tampered with; the first entry wins, and the live object decides
			// whether it may be written.
			continue
		}
		w.add(&unit{key: key, item: item, recorded: true})
	}
	for i := range in.Desired {
		d := &in.Desired[i]
		if (d.Policies.RunOn == policy.RunOnApply) != (in.Cause == Applying) {
			continue // it is applied at another time
		}
		u := w.byKey[d.Key]
		if u == nil {
			u = &unit{key: d.Key}
			w.add(u)
		}
		if u.desired != nil {
			mistakes = append(mistakes, fmt.Errorf("%s: is defined more than once (duplicate)", d.Key))
			continue
		}
		u.setDesired(d)
	}
	if len(mistakes) > 0 {
		return nil, errors.Join(mistakes...)
	}
	slices.SortFunc(w.units, func(a, b *unit) int { return a.key.Compare(b.key) })
	w.placeInstances()
	for _, u := range w.units {
		u.setLive(in)
		// A former version has recorded it, and its owner removes its label in the end if no write has done so.
		u.dropped = u.isSharedType() && (!u.recorded || u.live.Existence != Unknown && !u.isOurs())
		if u.isReleasedByMistake(in) {
			u.item.Phase, w.recordFirst = vocabulary.PhaseApplied, true
		}
	}
	return w, w.findNeeds()
}

// placeInstances finds the objects that are instances of managed types. For a desired
// object only desired types count: a type that is removed
// orders nothing but its own removal.
func (w *work) placeInstances() {
	desired := typesOf(slices.DeleteFunc(slices.Clone(w.units), func(u *unit) bool { return u.desired == nil }), w.in.ManagedTypes)
	known := typesOf(w.units, w.in.ManagedTypes)
	for _, u := range w.units {
		if u.desired != nil {
			u.instance = isInstance(desired, u.key.GroupKind())
		} else {
			u.instance = isInstance(known, u.key.GroupKind())
		}
	}
}

func (w *work) add(u *unit) {
	w.units = append(w.units, u)
	w.byKey[u.key] = u
}

func (w *work) step(s Step) {
	s.Owner = w.in.Owner
	w.steps = append(w.steps, s)
}

func (w *work) wait(u *unit, reason report.WaitReason, message string) {
	w.waiting = append(w.waiting, Wait{Key: u.key, Reason: reason, Message: message})
}

// notePending notes that a write of the object's wave is outstanding.
func (w *work) notePending(u *unit) {
	order := int(u.item.ApplyOrder)
	w.firstUnwritten = min(w.firstUnwritten, order)
	if !u.blockedByFailure {
		w.firstMoving = min(w.firstMoving, order)
	}
}

// blockWrite is notePending for an object that cannot be written now: later objects in the order
// wait.
func (w *work) blockWrite(u *unit) {
	w.notePending(u)
	u.writeBlocked = true
}

func (w *work) note(key Key, reason, format string, args ...any) {
	w.notes = append(w.notes, Note{Key: key, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (w *work) plan() Plan {
	p := Plan{Steps: w.steps, Waiting: w.waiting, Notes: w.notes, Deviations: w.deviations, Ignored: w.ignored, Retained: w.retained}
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return a.Stage - b.Stage })
	p.Inventory, p.Gone, p.MustRecord = w.record()
	ignored := sets.New(w.ignored...)
	for _, u := range w.units {
		if w.in.Cause == Deleting || u.desired != nil && !ignored.Has(u.key) {
			p.Total++
			if u.settled && !u.conflicting {
				p.Settled++
			}
		}
	}
	return p
}
