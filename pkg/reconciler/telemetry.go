// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// part runs a part of a call, in a span and with its duration measured.
func (r *Reconciler) part(ctx context.Context, phase metrics.Phase, f func(ctx context.Context) error) error {
	start := time.Now()
	ctx, span := r.tracer.Start(ctx, "corbel."+string(phase))
	err := f(ctx)
	span.End(err)
	metrics.Took(metrics.ControllerOf(ctx, r.name), phase, time.Since(start))
	return err
}

// next plans the next batch.
func (r *Reconciler) next(ctx context.Context, in *plan.Input) (next plan.Plan, err error) {
	err = r.part(ctx, metrics.PhasePlan, func(context.Context) error {
		in.Now = r.settings.now()
		next, err = plan.Next(*in)
		return err
	})
	return next, err
}

// execute executes the steps of a batch, whose failures are in the results.
func (r *Reconciler) execute(ctx context.Context, steps []plan.Step) (results []plan.Result) {
	_ = r.part(ctx, metrics.PhaseExecute, func(ctx context.Context) error {
		results = r.executor.Run(ctx, steps)
		for i, result := range results {
			results[i].Observation = r.sealed(result.Step.Owner, result.Step.Key, result.Observation)
		}
		return nil
	})
	return results
}

// confide notes the secrets among the objects of a request, so that nothing that
// comes out of the call tells them.
func confide(ctx context.Context, owner Owner, objects []client.Object, wanted *Wanted) (context.Context, *redact.Secrets) {
	ctx, secrets := redact.Ensure(ctx)
	secrets.Publish(owner.Kind, owner.Namespace, owner.Name)
	for _, object := range objects {
		secrets.AddObjects(object)
	}
	wanted.confide(secrets)
	return log.IntoContext(ctx, secrets.Logger(log.FromContext(ctx))), secrets
}

// what happened to objects that are worth an event of their own.
var happened = map[plan.Reason]string{
	plan.ReasonAdopted:       "adopted: it was there before",
	plan.ReasonOwnershipLost: "marks put back: another client had removed them",
}

// tellDone notes a step that is worth an event of its own. What has failed before it is
// still known.
func (c *call) tellDone(step plan.Step) {
	switch message := happened[step.Reason]; {
	case step.PreviousOwner != "":
		c.note(Note{Key: step.Key, Message: "adopted: it belonged to " + step.PreviousOwner})
	case message != "":
		c.note(Note{Key: step.Key, Message: message})
	case step.Verb == plan.VerbDelete && step.Reason == plan.ReasonRecreate:
		why := fmt.Sprintf("its manifest has changed, and its update policy is %s", step.Desired.Policies.Update)
		if failed := c.in.Failed[step.Key]; failed.Immutable {
			why = failed.Message // names the field
		}
		c.note(Note{Key: step.Key, Message: "recreated: " + why})
	case step.Verb == plan.VerbOrphan:
		c.note(Note{Key: step.Key, Message: "released: it is left behind, without our marks"})
	}
}

// tellOrphans notes, of objects that were looked at, those that bear our marks
// although no inventory names them. An object counts once: when it was looked at
// for the first time, or when its creation found out that it exists.
func (c *call) tellOrphans(looked []plan.Key) {
	for _, key := range looked {
		live := c.in.Live[key]
		switch {
		case !c.strangers[key] || live.Existence == plan.NotFetched:
			continue
		case live.Existence == plan.Present && c.in.Owner.Owns(live.Ownership):
			c.note(Note{Key: key, Warning: plan.WarnOrphanFound, Message: "found: it bears the ownership marks of this component, but was not in its inventory"})
		}
		delete(c.strangers, key)
	}
}

// conclude is the only exit of a call: it returns the outcome and the error without
// secrets, and an outcome with an error is not done.
func (r *Reconciler) conclude(ctx context.Context, outcome Outcome, err error) (Outcome, error) {
	secrets := redact.From(ctx)
	outcome.failed = err != nil
	quietWaits(secrets, outcome.Waiting)
	quietNotes(secrets, outcome.Notes)
	quietDeviations(secrets, outcome.Drifted)
	for i, note := range outcome.Notes {
		if note.Warning == plan.WarnOrphanFound {
			isNote := func(item InventoryItem) bool { return plan.KeyOf(item) == note.Key }
			if !outcome.Unrecorded && slices.ContainsFunc(outcome.Inventory.Items, isNote) {
				outcome.Notes[i].Message += "; it is recorded now"
			}
			metrics.OrphansFound(metrics.ControllerOf(ctx, r.name), 1)
		}
	}
	return outcome, secrets.Error(err)
}

func quietWaits(secrets *redact.Secrets, waits []Wait) {
	for i := range waits {
		waits[i].Message = secrets.Text(waits[i].Message)
	}
}

func quietNotes(secrets *redact.Secrets, notes []Note) {
	for i := range notes {
		notes[i].Message = secrets.Text(notes[i].Message)
	}
}
