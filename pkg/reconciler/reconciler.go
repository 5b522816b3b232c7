// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/rights"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/pkg/status"
)

// Reconciler brings sets of objects into a target cluster and removes them
// again. It keeps no state about them between calls that it could not do without:
// what it must remember is in the inventory. It is safe for concurrent use, except that requests of one
// owner must not run side by side.
type Reconciler struct {
	name     string
	target   cluster.Target
	settings settings
	compiler *status.Compiler
	tracer   trace.Tracer
	observer *observe.Observer
	executor *execute.Executor
	contests *contests
	followed followed
	rights   *rights.Reviewer
}

// NewReconciler returns a Reconciler that works on the target. The name is a
// DNS name; it is the prefix of the annotations that tune the handling of
// objects and of the marks of ownership. All mistakes in the options are
// reported in one error.
func NewReconciler(name string, target cluster.Target, options ReconcilerOptions) (*Reconciler, error) {
	settings, err := options.resolve(name)
	if target == nil {
		err = errors.Join(err, errors.New("a reconciler needs a target"))
	}
	if err != nil {
		return nil, fmt.Errorf("reconciler options: %w", err)
	}
	r := &Reconciler{name: name, target: target, settings: settings, compiler: &status.Compiler{}, tracer: trace.New(options.TracerProvider), contests: &contests{}}
	r.rights = rights.NewReviewer(target.Objects(), settings.now)
	var changed func(watch.Change)
	if settings.changed != nil {
		changed = r.changed
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

// Apply brings the cluster closer to the wanted objects: it creates, updates
// and prunes as far as it can go without waiting, and says what it waits for.
// Call it again, with the inventory that it returned, until the outcome is done.
//
// Mistakes in the objects are an *InvalidError; nothing is written then. Other
// errors are joined, one for each object that failed; they include
// *OwnerConflictError. A cancelled context ends the call after the requests
// under way. The inventory of the outcome must be kept in every case.
func (r *Reconciler) Apply(ctx context.Context, request ApplyRequest) (Outcome, error) {
	ctx, _ = confide(ctx, request.Owner, request.Objects, request.Wanted)
	in, err := r.applyInput(ctx, request)
	if err != nil {
		return r.conclude(ctx, Outcome{Inventory: request.Inventory}, err)
	}
	r.observer.Suspicions.Begin(in.Owner.ID)
	outcome, err := r.run(ctx, in, request.Record)
	outcome.Wanted = in.wanted
	outcome.Again = r.observer.Suspicions.Next(in.Owner.ID)
	if outcome.Total > 0 {
		r.settings.claims.set(in.target, in.Owner.Ref, claimed(in.Input, outcome), r.settings.now())
	}
	return r.conclude(ctx, outcome, err)
}

// Delete removes everything that is in the inventory, or leaves it behind as
// its delete policy says. Call it again until the outcome is done. Errors are
// like those of Apply.
//
// Objects with the annotation run-on are applied now: before the first deletion,
// or after the last one. Each is awaited, counts as done once it is ready, and
// is removed like the others. The namespaces and types of the last ones stay as
// long as they. One that fails is a *HookFailedError, and nothing goes on until
// it is ready, is deleted and runs again, or the request skips all of them.
func (r *Reconciler) Delete(ctx context.Context, request DeleteRequest) (Outcome, error) {
	ctx, _ = confide(ctx, request.Owner, request.Objects, nil)
	in, err := r.deleteInput(ctx, request)
	if err == nil {
		err = r.addHooks(ctx, &in, request)
	}
	if err != nil {
		return r.conclude(ctx, Outcome{Inventory: request.Inventory}, err)
	}
	r.settings.claims.set(in.target, in.Owner.Ref, nil, r.settings.now())
	r.contests.forget(in.Owner.Ref)
	outcome, err := r.run(ctx, in, request.Record)
	if err == nil && outcome.Done() {
		r.Leave(request.Owner)
	}
	return r.conclude(ctx, outcome, err)
}

// FenceSelector is the label, as key=value, of the ValidatingAdmissionPolicies that
// the option TypeFence puts up in a cluster on behalf of an owner. The cluster is
// named by the uid of its namespace kube-system.
func FenceSelector(name string, cluster types.UID, owner Owner) string {
	return execute.FenceSelector(name, ownerIn(cluster, owner))
}

// Plan returns the first batch of what Apply would do, and why. It only reads. What
// it says is without secrets; the manifests in its steps are as they would be sent.
func (r *Reconciler) Plan(ctx context.Context, request ApplyRequest) (Plan, error) {
	ctx, secrets := confide(ctx, request.Owner, request.Objects, request.Wanted)
	in, err := r.applyInput(ctx, request)
	if err != nil {
		return Plan{}, secrets.Error(err)
	}
	if err := r.look(ctx, &in.Input, keysOf(in.Input), manner{}); err != nil {
		return Plan{}, secrets.Error(err)
	}
	in.AwaitedBy = r.claimed(in)
	in.Conflicts = r.contests.of(in.Owner.Ref, r.settings.now())
	c := newCall(in)
	c.tellOrphans(keysOf(in.Input))
	next, err := r.next(ctx, &c.in.Input)
	for i := range next.Steps {
		next.Steps[i].Desired = next.Steps[i].Desired.Unpacked()
	}
	c.remember(next)
	next.Notes = c.told
	quietWaits(secrets, next.Waiting)
	quietNotes(secrets, next.Notes)
	quietDeviations(secrets, next.Deviations)
	return next, secrets.Error(err)
}

// claimed returns what others wait for at this moment; a deletion minds nobody.
func (r *Reconciler) claimed(in input) map[Key]string {
	if in.Cause != plan.Applying {
		return nil
	}
	return r.settings.claims.of(in.target, in.Owner.Ref, r.settings.now())
}
