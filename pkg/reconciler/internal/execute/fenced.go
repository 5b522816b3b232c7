// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
// from creating what they fenced. It asks the server only once for each owner,
// and again after a fence could not be taken down.
func (e *Executor) Sweep(ctx context.Context, owner plan.Owner) error {
	if !e.options.TypeFence {
		return nil
	}
	if _, clean := e.swept.Load(owner.ID); clean {
		return nil
	}
	for _, kind := range []schema.GroupVersionKind{bindingKind, policyKind} {
		if err := e.sweepKind(ctx, kind, owner); err != nil {
			return fmt.Errorf("look for fences that were left behind: %w", err)
		}
	}
	e.swept.Store(owner.ID, true)
	return nil
}

func (e *Executor) sweepKind(ctx context.Context, kind schema.GroupVersionKind, owner plan.Owner) error {
	resource, err := e.types.Resolve(ctx, kind)
	if _, unserved := errors.AsType[*cluster.NotServedError](err); unserved {
		return nil
	}
	if err != nil {
		return err
	}
	selector := e.options.Name + "/" + labelFence + "=" + owner.ID
	list, err := e.objects.ListMetadata(ctx, resource, "", cluster.ListOptions{Selector: selector})
	if apierrors.IsForbidden(err) {
		return nil // who may not look has not put up any
	}
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		if err := e.dismiss(ctx, resource, item.Name, owner); err != nil {
			return err
		}
	}
	return nil
}
