// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// run plans and executes until a plan has no steps: observe, decide, record, write, and again with
// the answers of the server.
func (r *Reconciler) run(ctx context.Context, in input, record func(context.Context, v1alpha1.Inventory) error) (Outcome, error) {
	call := newCall(in)
	ctx = execute.WithConfirm(ctx, in.confirmation.confirmOwner)
	if err := r.ensureShared(ctx, call); err != nil {
		return call.outcome(plan.Plan{}), err
	}
	if call.unavailable {
		return call.outcome(plan.Plan{}), call.failures()
	}
	again, how := keysOf(in.Input), readMode{assumeAbsent: mayAssumeAbsent(in.Input), urgent: in.urgent}
	for {
		next, err := r.next(ctx, call, again, how)
		if err != nil {
			return call.outcome(plan.Plan{}), err
		}
		how.force = true
		call.gone = append(call.gone, next.Gone...)
		for _, note := range next.Notes {
			call.addNote(note)
		}
		if next.MustRecord {
			if err := r.record(ctx, call, next, record); err != nil {
				return call.outcome(next), errors.Join(call.failures(), err)
			}
		}
		if len(next.Steps) == 0 {
			call.in.Recorded = next.Inventory
			if call.in.Cause == plan.Deleting && next.Done() {
				// The hooks before and after the deletion have run.
				call.in.hooks, call.in.Desired = false, nil
			}
			// An object that is there again, although it was removed, reopens the call: it is
			// recorded before the next plan.
			if cameBack, err := r.recheckGone(ctx, call); err != nil || !cameBack {
				return call.outcome(next), errors.Join(call.failures(), err)
			}
			next.Inventory, again = call.in.Recorded, nil
			if err := r.record(ctx, call, next, record); err != nil {
				return call.outcome(next), errors.Join(call.failures(), err)
			}
			continue
		}
		executing, done := r.startPhase(ctx, metrics.PhaseExecute)
		results := r.executor.Run(executing, next.Steps) // the results hold the errors
		done(nil)
		for i, result := range results {
			results[i].Observation = r.withSeal(result.Step.Owner, result.Step.Key, result.Observation)
		}
		again = call.fold(next, results, metav1.NewTime(r.settings.Now().UTC()))
		r.noteRepairs(call, results)
		if err := errors.Join(ctx.Err(), in.confirmation.failure()); err != nil {
			return call.outcome(next), errors.Join(call.failures(), err)
		}
		if call.unavailable {
			// Every other step would wait for its own timeout, or make things worse.
			return call.outcome(next), call.failures()
		}
	}
}

// next reads the given objects, and plans with the state that is known then.
func (r *Reconciler) next(ctx context.Context, c *call, keys []plan.Key, how readMode) (plan.Plan, error) {
	reading, done := r.startPhase(ctx, metrics.PhaseRead)
	err := r.look(reading, &c.in.Input, keys, how)
	if done(err); err != nil {
		return plan.Plan{}, err
	}
	c.noteOrphans(keys)
	c.in.Now = r.settings.Now()
	c.in.Conflicts = r.history.conflicts(c.in.Owner.Ref, c.in.Now)
	c.in.AwaitedBy = r.handovers.waitedFor(c.in.Owner.Ref, c.in.Now)
	_, done = r.startPhase(ctx, metrics.PhasePlan)
	next, err := plan.Next(c.in.Input)
	if done(err); err != nil {
		return plan.Plan{}, fmt.Errorf("plan: %w", err)
	}
	return next, nil
}

// record makes the inventory of a plan durable by the function of the request.
func (r *Reconciler) record(ctx context.Context, c *call, next plan.Plan, record func(context.Context, v1alpha1.Inventory) error) error {
	if record == nil {
		return errors.New("the request has no function that records the inventory")
	}
	started := r.settings.Now()
	recording, done := r.startPhase(ctx, metrics.PhaseRecord)
	err := record(recording, c.inventory(next.Inventory))
	if done(err); err != nil {
		return fmt.Errorf("record the inventory: %w", err)
	}
	c.in.confirmation.confirmedAt(started)
	return nil
}
