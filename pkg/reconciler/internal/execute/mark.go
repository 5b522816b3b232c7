// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// mark puts our marks back on an object, and changes nothing else.
func (e *Executor) mark(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	manifest := step.Desired.Manifest
	label, annotation := e.options.Name+"/"+v1alpha1.LabelOwnerID, e.options.Name+"/"+v1alpha1.AnnotationOwner
	metadata := map[string]any{
		"labels":      map[string]any{label: manifest.GetLabels()[label]},
		"annotations": map[string]any{annotation: manifest.GetAnnotations()[annotation]},
	}
	precondition(metadata, step)
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return nil, err
	}
	return e.objects.Patch(ctx, resource, step.Key.Namespace, step.Key.Name, types.MergePatchType, patch, e.options.FieldOwner)
}
