// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// orphan strips our marks from an object. What the manifest has set stays.
func (e *Executor) orphan(ctx context.Context, step plan.Step) plan.Result {
	patch, err := e.unmark(step)
	if err != nil {
		return failed(step, err)
	}
	observation, err := retryPath(func() (plan.Observation, error) {
		resource, err := e.types.ResolveAny(ctx, step.Key.GroupKind(), step.Version)
		if err != nil {
			return plan.Observation{}, err
		}
		live, err := e.objects.Patch(ctx, resource, step.Key.Namespace, step.Key.Name, types.MergePatchType, patch, e.options.FieldOwner)
		if cluster.IsNotFound(err, resource, step.Key.Name) {
			return plan.Observation{Existence: plan.Absent}, nil
		}
		if err != nil {
			return plan.Observation{}, err
		}
		if live.GetUID() != step.UID {
			return plan.Observation{}, errors.New("the server answered with an object of another uid")
		}
		return e.observer.Of(ctx, live, nil), nil
	})
	if err != nil {
		return failed(step, err)
	}
	return plan.Result{Step: step, Observation: observation}
}

// unmark is the merge patch that removes our marks, on the condition that the
// object is the one that the plan saw.
func (e *Executor) unmark(step plan.Step) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             step.UID,
		"resourceVersion": step.ResourceVersion,
		"labels":          map[string]any{e.options.Name + "/" + v1alpha1.LabelOwnerID: nil},
		"annotations":     map[string]any{e.options.Name + "/" + v1alpha1.AnnotationOwner: nil},
	}})
}
