// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// remove deletes an object, if its guard lets it.
func (e *Executor) remove(ctx context.Context, step plan.Step) plan.Result {
	if e.options.TypeFence && fenceable(step) {
		return e.removeFenced(ctx, step)
	}
	return e.removeGuarded(ctx, step)
}

// removeGuarded asks the guard and deletes. The guard is the last thing before
// the deletion: what it found holds at most as long as the next request takes.
func (e *Executor) removeGuarded(ctx context.Context, step plan.Step) plan.Result {
	verdict, err := e.guard(ctx, step)
	if err != nil || !verdict.passes() {
		return e.refused(ctx, step, verdict, err)
	}
	observation, err := retryPath(func() (plan.Observation, error) {
		resource, err := e.types.ResolveAny(ctx, step.Key.GroupKind(), step.Version)
		if err != nil {
			return plan.Observation{}, err
		}
		return e.delete(ctx, resource, step)
	})
	if err != nil {
		return failed(step, err)
	}
	return plan.Result{Step: step, Observation: observation, Notes: e.lost(ctx, step, observation, verdict)}
}

// refused is the result of a deletion that the guard does not let pass.
func (e *Executor) refused(ctx context.Context, step plan.Step, verdict verdict, err error) plan.Result {
	switch {
	case err != nil:
		return failed(step, err)
	case verdict.release:
		result := e.orphan(ctx, step)
		result.Unread = verdict.unread != ""
		if result.Released = result.Err == nil; result.Released {
			result.Notes = []plan.Note{leftBehind(step, verdict)}
		}
		return result
	default:
		return plan.Result{Step: step, Blocked: verdict.blocked, Obstacles: verdict.obstacles, Unread: verdict.unread != ""}
	}
}

// leftBehind notes that an object was left behind that was to be deleted.
func leftBehind(step plan.Step, verdict verdict) plan.Note {
	const left = "is left behind without our marks, because "
	switch {
	case verdict.unread != "":
		return plan.Note{Key: step.Key, Warning: plan.WarnUnread,
			Message: left + "it is not known whether objects of others live in it: " + verdict.unread}
	case step.Then.Keeps && step.Then.Origin != v1alpha1.OriginNamespace:
		return plan.Note{Key: step.Key, Warning: plan.WarnKept, Message: left + "something in it was left behind before and would go with it"}
	default:
		return plan.Note{Key: step.Key, Message: "released: " + verdict.why}
	}
}

func (e *Executor) delete(ctx context.Context, resource cluster.Resource, step plan.Step) (plan.Observation, error) {
	propagation := metav1.DeletePropagationBackground
	if step.Because == plan.BecauseRecreate && step.Desired.Policies.RecreatePropagation == policy.PropagationOrphan {
		propagation = metav1.DeletePropagationOrphan
	}
	gone, live, err := e.objects.Delete(ctx, resource, step.Key.Namespace, step.Key.Name, step.UID, step.ResourceVersion, propagation)
	switch {
	case cluster.IsNotFound(err, resource, step.Key.Name):
		return plan.Observation{Existence: plan.Absent}, nil
	case err != nil:
		return plan.Observation{}, err
	case gone:
		return plan.Observation{Existence: plan.Absent}, nil
	case live == nil:
		return plan.Observation{Why: "the server accepted the deletion and did not say whether the object is gone"}, nil
	default:
		return e.observer.Of(ctx, live, step.Desired), nil
	}
}
