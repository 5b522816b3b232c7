// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// disown takes the marks of the former owner off an object that was just taken
// over, as the server answered it. A server-side apply leaves them, and so does
// every write that minds ignored fields; as long as they are there, nobody can
// tell who came last. If it fails, the write counts as not confirmed, and both
// are done again.
func (e *Executor) disown(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if !takesOver(step) {
		return live, nil
	}
	labels, annotations := e.observer.OthersMarks(live, step.Desired)
	if len(labels)+len(annotations) == 0 {
		return live, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":             live.GetUID(),
		"resourceVersion": live.GetResourceVersion(),
		"labels":          nothingAt(labels),
		"annotations":     nothingAt(annotations),
	}})
	if err != nil {
		return nil, err
	}
	live, err = e.objects.Patch(ctx, resource, step.Key.Namespace, step.Key.Name, types.MergePatchType, patch, e.options.FieldOwner)
	if err != nil {
		return nil, fmt.Errorf("take off the marks of the former owner: %w", err)
	}
	return live, nil
}

// takesOver tells whether the step may have taken the object from somebody, now
// or in an attempt whose outcome is not known.
func takesOver(step plan.Step) bool {
	return step.Verb != plan.VerbCreate && step.Desired.Policies.Adoption == v1alpha1.AdoptionPolicyAlways &&
		(step.Because == plan.BecauseAdopted || step.Because == plan.BecauseUnconfirmed)
}

// nothingAt is the part of a merge patch that removes the keys.
func nothingAt(keys []string) map[string]any {
	nothing := make(map[string]any, len(keys))
	for _, key := range keys {
		nothing[key] = nil
	}
	return nothing
}
