// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// send is one way to write a manifest. It returns the server's answer.
type send func(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error)

// write writes the manifest of a step.
func (e *Executor) write(ctx context.Context, step plan.Step, send send) plan.Result {
	if step.Desired == nil || step.Desired.Manifest == nil {
		return failed(step, errors.New("there is no manifest"))
	}
	if step.Verb != plan.VerbCreate && (step.UID == "" || step.ResourceVersion == "") {
		return failed(step, errors.New("there is no precondition"))
	}
	var notes []plan.Note
	var replicas *int64
	live, err := retryPath(func() (*unstructured.Unstructured, error) {
		resource, err := e.types.Resolve(ctx, step.Key.GroupKind().WithVersion(step.Desired.Version))
		if err != nil {
			return nil, err
		}
		if step.Claims() {
			if err := permitted(ctx); err != nil {
				return nil, err
			}
		}
		live, err := send(ctx, resource, step)
		if err != nil {
			return nil, err
		}
		notes, replicas = e.tellScaled(ctx, resource, step, live), e.wantedReplicas(ctx, resource, step.Desired.Manifest)
		return e.disown(ctx, resource, step, live)
	})
	if err != nil {
		return failed(step, err)
	}
	observation := e.observer.Of(ctx, live, step.Desired)
	if step.Verb == plan.VerbMark {
		observation.Drift = observe.DriftOf(live, step.Desired, e.options.FieldOwner) // what else has changed stays
	}
	return plan.Result{Step: step, Observation: observation, Replicas: replicas, Notes: notes}
}

// retryPath repeats a request, once, with what the server says about the type
// now, if the path that it was known by is not served. Nothing was done then.
func retryPath[R any](request func() (R, error)) (R, error) {
	result, err := request()
	if _, unserved := errors.AsType[*cluster.UnservedPathError](err); unserved {
		return request()
	}
	return result, err
}

// body returns a copy of the manifest whose metadata may be changed. The rest
// is shared with the manifest.
func body(manifest *unstructured.Unstructured) (*unstructured.Unstructured, map[string]any) {
	content := maps.Clone(manifest.Object)
	metadata, _ := content["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	content["metadata"] = metadata
	return &unstructured.Unstructured{Object: content}, metadata
}

// precondition makes the server refuse the write if the object is not the one
// that the plan saw.
func precondition(metadata map[string]any, step plan.Step) {
	metadata["uid"] = string(step.UID)
	metadata["resourceVersion"] = step.ResourceVersion
}
