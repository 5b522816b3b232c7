// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// maxLooks bounds how often one object is looked at again in one call because
// a write met something else than what the plan had seen.
const maxLooks = 3

// maxWrites bounds how often one object is written in one call. More than a
// deletion and a creation is needed only if the server does not keep what we write.
const maxWrites = 4

// run plans and executes until a plan has no steps: observe, decide, record,
// write, and again with what the answers told.
func (r *Reconciler) run(ctx context.Context, in input, record func(context.Context, v1alpha1.Inventory) error) (Outcome, error) {
	call := newCall(in)
	if err := r.executor.Sweep(ctx, in.Owner, in.Recorded); err != nil {
		return call.outcome(plan.Plan{}), err
	}
	ctx = execute.WithConfirm(ctx, in.fence.pass)
	again, how := keysOf(in.Input), manner{presume: presumes(in.Input)}
	for {
		if err := r.part(ctx, metrics.PhaseRead, func(ctx context.Context) error {
			return r.look(ctx, &call.in.Input, again, how)
		}); err != nil {
			return call.outcome(plan.Plan{}), err
		}
		call.tellOrphans(again)
		how.ask = true
		call.in.Conflicts = r.contests.of(in.Owner.Ref, r.settings.now())
		call.in.AwaitedBy = r.claimed(call.in) // somebody may have come to wait meanwhile
		next, err := r.next(ctx, &call.in.Input)
		if err != nil {
			return call.outcome(plan.Plan{}), fmt.Errorf("plan: %w", err)
		}
		call.remember(next)
		r.preflight(ctx, call, next)
		if next.MustRecord {
			if saved, err := r.save(ctx, call, next, record); err != nil || !saved {
				return call.unsaved(next, saved), errors.Join(call.err(), err)
			}
		}
		if len(next.Steps) == 0 {
			call.in.Recorded = next.Inventory
			call.end(next)
			if returned, err := r.lastLook(ctx, call); err != nil || !returned {
				return call.outcome(next), errors.Join(call.err(), err)
			}
			next.Inventory, again = call.in.Recorded, nil
			if saved, err := r.save(ctx, call, next, record); err != nil || !saved {
				return call.unsaved(next, saved), errors.Join(call.err(), err)
			}
			continue
		}
		results := r.execute(ctx, next.Steps)
		again = call.fold(next, results, metav1.NewTime(r.settings.now().UTC().Truncate(time.Second)))
		r.corrected(call, results)
		if err := errors.Join(ctx.Err(), in.fence.failure()); err != nil {
			return call.outcome(next), errors.Join(call.err(), err)
		}
		if call.unavailable {
			// Every other step would wait for its own timeout, or make things worse.
			return call.outcome(next), call.err()
		}
	}
}

// save makes the record of a plan durable. It tells whether there is a way to do so.
func (r *Reconciler) save(ctx context.Context, c *call, next plan.Plan, record func(context.Context, v1alpha1.Inventory) error) (saved bool, err error) {
	if record == nil {
		return false, nil
	}
	begun := r.settings.now()
	if err := r.part(ctx, metrics.PhaseRecord, func(ctx context.Context) error {
		return record(ctx, c.inventory(next.Inventory))
	}); err != nil {
		return true, fmt.Errorf("record the inventory: %w", err)
	}
	c.in.fence.known(begun)
	return true, nil
}
