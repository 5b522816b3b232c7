// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/rights"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/pkg/status"
)

// Reconciler brings sets of objects into a target cluster and removes them
// again. What it keeps about them between calls only saves requests: everything else
// is in the inventory. It is safe for concurrent use, except that requests of one
// owner must not run side by side.
type Reconciler struct {
	name      string
	target    cluster.Target
	settings  settings
	compiler  *status.Compiler
	tracer    trace.Tracer
	observer  *observe.Observer
	executor  *execute.Executor
	history   *repairHistory
	handovers handovers
	watched   watchedOwners
	rights    *rights.Reviewer
}

// NewReconciler returns a Reconciler that works on the target. The name is a
// DNS name; it is the prefix of the annotations that tune the handling of
// objects and of the label and annotation of ownership. All mistakes in the options are
// reported in one error.
func NewReconciler(name string, target cluster.Target, options ReconcilerOptions) (*Reconciler, error) {
	settings, err := options.resolve(name)
	if target == nil {
		err = errors.Join(err, errors.New("a reconciler needs a target"))
	}
	if err != nil {
		return nil, fmt.Errorf("reconciler options: %w", err)
	}
	r := &Reconciler{name: name, target: target, settings: settings, compiler: &status.Compiler{}, tracer: trace.New(options.TracerProvider), history: newRepairHistory()}
	r.rights = rights.NewReviewer(target.Objects(), settings.now)
	var changed func(watch.Change)
	if settings.changed != nil {
		changed = r.onChange
	}
	r.observer = observe.New(target, observe.Options{
		Name: name, FieldOwner: settings.fieldOwner, Parallelism: settings.parallelism, Compiler: r.compiler,
		Hasher: settings.hasher, ReadyWhen: settings.readyWhen, Changed: changed, Now: settings.now,
	})
	r.executor = execute.New(target, r.observer, execute.Options{
		Name: name, FieldOwner: settings.fieldOwner, Parallelism: settings.parallelism, Tracer: r.tracer,
		TypeFence: settings.typeFence,
	})
	return r, nil
}

// Apply brings the cluster closer to the desired objects: it creates, updates
// and prunes as far as it can go without waiting, and says what it waits for.
// Call it again, with the inventory that it returned, until the outcome is done.
//
// Mistakes in the objects are an *InvalidError; nothing is written then. Other
// errors are joined, one for each object that failed; they include
// *OwnerConflictError. A cancelled context ends the call after the requests
// under way. The inventory of the outcome must be kept in every case.
func (r *Reconciler) Apply(ctx context.Context, request ApplyRequest) (Outcome, error) {
	ctx = registerSecrets(ctx, request.Owner, request.Objects, request.Desired)
	in, err := r.applyInput(ctx, request)
	if err != nil {
		return r.conclude(ctx, Outcome{Inventory: request.Inventory}, err)
	}
	outcome, err := r.run(ctx, in, request.Record)
	outcome.Desired = in.reusable
	outcome.NextDriftCheck = r.nextDriftCheck(in.Input)
	if outcome.Total > 0 {
		r.handovers.setWaiting(in.Owner.Ref, handoverKeys(in.Input, outcome), r.settings.now())
	}
	return r.conclude(ctx, outcome, err)
}

// Delete removes everything that is in the inventory, or orphans it as
// its delete policy says. Call it again until the outcome is done. Errors are
// like those of Apply.
//
// Objects with the annotation run-on are applied now: before the first deletion,
// or after the last one. Each is awaited, counts as done once it is ready, and
// is removed like the others. The namespaces and types of the last ones stay as
// long as they. One that fails is a *HookFailedError, and nothing goes on until
// it is ready, is deleted and runs again, or the request skips all of them.
func (r *Reconciler) Delete(ctx context.Context, request DeleteRequest) (Outcome, error) {
	ctx = registerSecrets(ctx, request.Owner, request.Objects, nil)
	in, err := r.deleteInput(ctx, request)
	if err == nil {
		err = r.addHooks(ctx, &in, request)
	}
	if err != nil {
		return r.conclude(ctx, Outcome{Inventory: request.Inventory}, err)
	}
	r.handovers.setWaiting(in.Owner.Ref, nil, r.settings.now())
	r.history.repairs.Forget(in.Owner.Ref)
	outcome, err := r.run(ctx, in, request.Record)
	if err == nil && outcome.Done() {
		r.StopWatching(request.Owner)
	}
	return r.conclude(ctx, outcome, err)
}

// Plan returns the first batch of what Apply would do, and why. It only reads. No secret is
// in what it returns. Errors are like those of Apply.
func (r *Reconciler) Plan(ctx context.Context, request ApplyRequest) (Plan, error) {
	ctx = registerSecrets(ctx, request.Owner, request.Objects, request.Desired)
	secrets := redact.From(ctx)
	in, err := r.applyInput(ctx, request)
	if err != nil {
		return Plan{}, secrets.Error(err)
	}
	call := newCall(in)
	next, err := r.next(ctx, call, keysOf(in.Input), readMode{})
	if err != nil {
		return Plan{}, secrets.Error(err)
	}
	for _, note := range next.Notes {
		call.addNote(note)
	}
	outcome := call.outcome(next)
	planned := Plan{Waiting: outcome.Waiting, Notes: outcome.Notes}
	for _, step := range next.Steps {
		planned.Steps = append(planned.Steps, PlannedStep{Key: Key(step.Key), Verb: string(step.Verb), Reason: string(step.Reason)})
	}
	for i := range planned.Waiting {
		planned.Waiting[i].Message = secrets.Text(planned.Waiting[i].Message)
	}
	for i := range planned.Notes {
		planned.Notes[i].Message = secrets.Text(planned.Notes[i].Message)
	}
	return planned, nil
}

// FenceSelector is the label, as key=value, of the ValidatingAdmissionPolicies that
// the option TypeFence puts up in a cluster on behalf of an owner. The cluster is
// named by the uid of its namespace kube-system.
func FenceSelector(name string, cluster types.UID, owner Owner) string {
	return execute.FenceSelector(name, ownerIn(cluster, owner))
}
