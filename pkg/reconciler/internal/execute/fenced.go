// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

const (
	// fenceEnd bounds the time that taking a fence down may take; it happens
	// also after the context has ended.
	fenceEnd = 10 * time.Second
	// fenceStay bounds how long a fence stays after the deletion of a type,
	// until the server refuses new instances by itself.
	fenceStay = 30 * time.Second
)

// removeFenced is remove behind a fence. Nothing is put up for a deletion that
// is blocked anyway.
func (e *Executor) removeFenced(ctx context.Context, step plan.Step) (result plan.Result) {
	verdict, err := e.guard(ctx, step)
	if err != nil || !verdict.passes() {
		return e.refused(ctx, step, verdict, err)
	}
	f := e.newFence(step)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fenceEnd)
		defer cancel()
		if err := e.lower(ctx, f, step.Owner); err != nil {
			e.swept.Delete(step.Owner.ID)
			result.Err = errors.Join(result.Err, classify(step, fmt.Errorf("take down the fence %s: %w", f.name, err)))
		}
	}()
	if err := e.raise(ctx, f, step.Owner); err != nil {
		return failed(step, fmt.Errorf("put up the fence %s, without which nothing is deleted: %w", f.name, err))
	}
	result = e.removeGuarded(ctx, step)
	if result.Err == nil && result.Blocked == "" && step.Key.GroupKind() == definitionKind {
		e.untilClosed(ctx, step)
	}
	return result
}

// untilClosed waits until the server refuses new instances of a deleted type by
// itself: the definition is gone, or says that it is terminating.
func (e *Executor) untilClosed(ctx context.Context, step plan.Step) {
	ctx, cancel := context.WithTimeout(ctx, fenceStay)
	defer cancel()
	for {
		live, err := e.objects.Get(ctx, definitions, "", step.Key.Name)
		gone := cluster.IsNotFound(err, definitions, step.Key.Name)
		if gone || err == nil && (live.GetUID() != step.UID || hasCondition(live, "Terminating")) || !pause(ctx, fencePause) {
			return
		}
	}
}

// Sweep removes the fences that a crash left behind: they would keep everybody
// from creating what they fenced. Whatever a fence was put up for is still in the
// record then, so nothing is asked if no namespace and no type is there; otherwise the
// server is asked once for each owner, and again after a fence could not be taken
// down. That the option is off by now makes no difference, but then nothing that
// goes wrong here keeps an owner from anything else.
func (e *Executor) Sweep(ctx context.Context, owner plan.Owner, recorded []v1alpha1.InventoryItem) error {
	if _, clean := e.swept.Load(owner.ID); clean || !slices.ContainsFunc(recorded, mayBeFenced) {
		return nil
	}
	err := e.sweep(ctx, owner)
	switch {
	case err == nil, !e.options.TypeFence && apierrors.IsForbidden(err):
		e.swept.Store(owner.ID, true)
		return nil
	case !e.options.TypeFence, apierrors.IsForbidden(err):
		// Whoever may not look may not put one up either, so there is hardly any.
		// The rights may come back.
		log.FromContext(ctx).V(1).Info("fences that were left behind cannot be looked for", "error", err.Error())
		return nil
	default:
		return fmt.Errorf("look for fences that were left behind: %w", err)
	}
}

// mayBeFenced tells whether a fence may have been put up to remove the object.
func mayBeFenced(item v1alpha1.InventoryItem) bool {
	gk := plan.KeyOf(item).GroupKind()
	return gk == definitionKind || gk == namespaceKind
}

// sweep looks for the policies only: they are put up before their bindings and
// taken down after them.
func (e *Executor) sweep(ctx context.Context, owner plan.Owner) error {
	resource, err := e.types.Resolve(ctx, policyKind)
	if _, unserved := errors.AsType[*cluster.NotServedError](err); unserved {
		return nil
	}
	if err != nil {
		return err
	}
	list, err := e.objects.ListMetadata(ctx, resource, "", cluster.ListOptions{Selector: FenceSelector(e.options.Name, owner)})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		if err := e.lower(ctx, &fence{name: item.Name}, owner); err != nil {
			return err
		}
	}
	return nil
}

// FenceSelector is the label that tells the fences of an owner, as key=value.
func FenceSelector(name string, owner plan.Owner) string {
	return name + "/" + labelFence + "=" + owner.ID
}
