// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// startPhase starts a phase of a call, in a span; done ends it and measures how long it took.
func (r *Reconciler) startPhase(ctx context.Context, phase metrics.Phase) (_ context.Context, done func(error)) {
	start := time.Now()
	ctx, span := r.tracer.Start(ctx, "corbel."+string(phase))
	return ctx, func(err error) {
		span.End(err)
		metrics.ObservePhase(metrics.ControllerOf(ctx, r.name), phase, time.Since(start))
	}
}

// noteStep notes a step that is worth an event of its own. The failures before it are still
// in the input.
func (c *call) noteStep(step plan.Step) {
	switch {
	case step.Reason == plan.ReasonOwnershipShared:
		c.addNote(plan.Note{Key: step.Key, Reason: report.NoteAdopted, Message: "adopted again: " + step.PreviousOwner + " had put its label or annotation on it"})
	case step.PreviousOwner != "":
		c.addNote(plan.Note{Key: step.Key, Reason: report.NoteAdopted, Message: "adopted: it belonged to " + step.PreviousOwner})
	case step.Reason == plan.ReasonAdopted:
		c.addNote(plan.Note{Key: step.Key, Reason: report.NoteAdopted, Message: "adopted: it was there before"})
	case step.Reason == plan.ReasonOwnershipLost:
		c.addNote(plan.Note{Key: step.Key, Reason: report.NoteOwnershipRestored, Message: "ownership restored: another client had removed our label or annotation"})
	case step.Verb == plan.VerbDelete && step.Reason == plan.ReasonRecreate:
		why := fmt.Sprintf("its manifest has changed, and its update policy is %s", step.Desired.Policies.Update)
		if failed := c.in.Failed[step.Key]; failed.Immutable {
			why = failed.Message // names the field
		}
		c.addNote(plan.Note{Key: step.Key, Reason: report.NoteRecreated, Message: "recreated: " + why})
	case step.Verb == plan.VerbOrphan:
		c.addNote(plan.Note{Key: step.Key, Reason: report.NoteReleased, Message: "released: it is orphaned, without our label and annotation"})
	}
}

// noteOrphans notes the objects, of those that were read, that are ours although no inventory names
// them. An object counts once: when it was read for the first time, or when its creation found out
// that it exists.
func (c *call) noteOrphans(looked []plan.Key) {
	for _, key := range looked {
		live := c.in.Live[key]
		switch {
		case !c.unlisted[key] || live.Existence == plan.NotFetched:
			continue
		case live.Existence == plan.Present && c.in.Owner.Owns(live.Ownership):
			c.addNote(plan.Note{Key: key, Reason: report.WarnOrphanFound, Warning: true, Message: "found: it has the ownership label and annotation of this component, but was not in its inventory"})
		}
		delete(c.unlisted, key)
	}
}

// conclude is the only exit of a call. An outcome with an error is not done.
func (r *Reconciler) conclude(ctx context.Context, outcome Outcome, err error) (Outcome, error) {
	outcome.failed = err != nil
	for i, note := range outcome.Notes {
		if note.Reason == report.WarnOrphanFound {
			isNote := func(item v1alpha1.InventoryItem) bool { return plan.KeyOf(item) == note.Key }
			if slices.ContainsFunc(outcome.Inventory.Items, isNote) {
				outcome.Notes[i].Message += "; it is recorded now"
			}
			metrics.OrphansFound(metrics.ControllerOf(ctx, r.name), 1)
		}
	}
	return outcome, err
}
