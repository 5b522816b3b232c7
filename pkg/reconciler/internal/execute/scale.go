// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// replicasPath is where objects of a type with the subresource scale hold the number
// of their replicas.
func (e *Executor) replicasPath(ctx context.Context, resource cluster.Resource) ([]string, error) {
	path := []string{"spec", "replicas"}
	if cluster.IsBuiltIn(resource.GVR.Group) {
		return path, nil
	}
	custom, err := e.types.Custom(ctx, resource.GVK())
	if err == nil && len(custom.ReplicasPath) > 0 {
		path = custom.ReplicasPath
	}
	return path, err
}

// wantedReplicas is the number of replicas that a manifest asks for, of an object
// that can be scaled; nil if it asks for none.
func (e *Executor) wantedReplicas(ctx context.Context, resource cluster.Resource, manifest *unstructured.Unstructured) *int64 {
	if !resource.Has("scale") {
		return nil
	}
	path, err := e.replicasPath(ctx, resource)
	if err != nil {
		return nil
	}
	value, there, err := unstructured.NestedFieldNoCopy(manifest.Object, path...)
	if !there || err != nil {
		return nil
	}
	replicas, err := strconv.ParseInt(fmt.Sprint(value), 10, 64)
	if err != nil {
		return nil
	}
	return &replicas
}

// asksAnew reports whether the manifest asks for another number of replicas than
// when it was last written, and no autoscaler decides about it.
func (e *Executor) asksAnew(ctx context.Context, resource cluster.Resource, step plan.Step) bool {
	before, wanted := step.Then.Replicas, e.wantedReplicas(ctx, resource, step.Desired.Manifest)
	return !step.Autoscaled && before != nil && wanted != nil && *before != *wanted
}

// leftFields are the fields, as JSON pointers, that a write leaves as they are: those
// that are to be ignored, and the number of replicas if it was set through the
// subresource scale, unless the manifest asks for another number than before.
func (e *Executor) leftFields(ctx context.Context, resource cluster.Resource, step plan.Step) ([]string, error) {
	ignored := step.Desired.Policies.IgnoreFields
	if !step.Scaled || !resource.Has("scale") || e.asksAnew(ctx, resource, step) {
		return ignored, nil
	}
	path, err := e.replicasPath(ctx, resource)
	if err != nil || !found(step.Desired.Manifest.Object, path...) {
		return ignored, err
	}
	return append(slices.Clone(ignored), "/"+strings.Join(path, "/")), nil
}

// tellScaled notes that a changed manifest does not decide about the number of
// replicas, if it asks for another one than there is.
func (e *Executor) tellScaled(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured) []plan.Note {
	if !step.Scaled || step.Because != plan.BecauseChanged {
		return nil
	}
	path, err := e.replicasPath(ctx, resource)
	if err != nil {
		return nil
	}
	wanted, asked, _ := unstructured.NestedFieldNoCopy(step.Desired.Manifest.Object, path...)
	actual, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
	if !asked || equality.Semantic.DeepEqual(wanted, actual) {
		return nil
	}
	return []plan.Note{{Key: step.Key, Message: fmt.Sprintf(
		"left alone: %s, which was set through the subresource scale", strings.Join(path, "."))}}
}
