// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"

	"github.com/corbel-run/corbel/internal/confidential"
)

// Apply brings the cluster closer to the desired objects: it creates, updates and prunes as far as
// it can go without waiting, and reports the objects that it waits for. Call it again, with the
// inventory that it returned, until the outcome is done.
//
// Mistakes in the objects are an *InvalidError; nothing is written then. Other errors are joined,
// one for each object that failed; they include *OwnerConflictError. A cancelled context ends the
// call after the requests under way. The caller must store the inventory of the outcome in every
// case.
func (r *Reconciler) Apply(ctx context.Context, request ApplyRequest) (Outcome, error) {
	ctx = confidential.Start(ctx, request.Confidential || request.Desired.isConfidential())
	in, err := r.applyInput(ctx, request)
	if err != nil {
		refused := Outcome{Inventory: request.Inventory}
		if invalid, ok := errors.AsType[*InvalidError](err); ok {
			for _, gvk := range invalid.unserved {
				refused.Awaited = append(refused.Awaited, awaitedType(gvk))
			}
		}
		return r.conclude(ctx, refused, err)
	}
	outcome, err := r.run(ctx, in, request.Record)
	outcome.Desired, outcome.Outputs = in.reusable, outputsOf(ctx, in.Input)
	outcome.NextDriftCheck = r.nextDriftCheck(in.Input)
	if outcome.Total > 0 {
		r.handovers.setWaiting(in.Owner.Ref, handoverKeys(in.Input, outcome), r.settings.Now())
	}
	return r.conclude(ctx, outcome, err)
}

// Delete removes everything that is in the inventory, or orphans it if its delete policy demands
// that. Call it again until the outcome is done. Errors are like those of Apply.
//
// Objects with the annotation run-on are applied now: before the first deletion, or after the last
// one. Delete waits for each, counts it as done once it is ready, and removes it like any other
// object. The namespaces and types of the last ones stay as long as they. A hook that fails is a
// *HookFailedError; the deletion continues when the hook is ready, is deleted and runs again, or
// the request skips all hooks.
func (r *Reconciler) Delete(ctx context.Context, request DeleteRequest) (Outcome, error) {
	ctx = confidential.Start(ctx, request.Confidential)
	in, err := r.deleteInput(ctx, request)
	if err == nil {
		err = r.addHooks(ctx, &in, request)
	}
	if err != nil {
		return r.conclude(ctx, Outcome{Inventory: request.Inventory}, err)
	}
	r.handovers.setWaiting(in.Owner.Ref, nil, r.settings.Now())
	r.history.repairs.ForgetOwner(in.Owner.Ref)
	outcome, err := r.run(ctx, in, request.Record)
	if err == nil && outcome.Done() {
		r.StopWatching(request.Owner)
	}
	return r.conclude(ctx, outcome, err)
}
