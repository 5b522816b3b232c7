// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/owned"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// keepPath gives the field at a path the value that it has in the live object, or removes it if it
// has none there. A PUT resets fields that it lacks, so the field is set even if the manifest lacks
// it.
func keepPath(body, live map[string]any, path []string) {
	if value, ok := lookup(live, path); ok {
		assign(body, path, runtime.DeepCopyJSONValue(value))
	} else {
		unset(body, path)
	}
}

// split returns the path of a JSON pointer (RFC 6901).
func split(pointer string) []string {
	var path []string
	for _, segment := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		segment = strings.ReplaceAll(segment, "~1", "/")
		path = append(path, strings.ReplaceAll(segment, "~0", "~"))
	}
	return path
}

func lookup(value any, path []string) (any, bool) {
	for _, segment := range path {
		switch container := value.(type) {
		case map[string]any:
			inner, ok := container[segment]
			if !ok {
				return nil, false
			}
			value = inner
		case []any:
			at, ok := index(container, segment)
			if !ok {
				return nil, false
			}
			value = container[at]
		default:
			return nil, false
		}
	}
	return value, true
}

// assign sets the value at the path. Maps on the way are made; elements of lists must exist,
// because their other fields are not known.
func assign(container any, path []string, value any) {
	last := len(path) == 1
	switch c := container.(type) {
	case map[string]any:
		if last {
			c[path[0]] = value
			return
		}
		if c[path[0]] == nil {
			if _, inList := strconv.Atoi(path[1]); inList == nil {
				return
			}
			c[path[0]] = map[string]any{}
		}
		assign(c[path[0]], path[1:], value)
	case []any:
		at, ok := index(c, path[0])
		switch {
		case !ok:
		case last:
			c[at] = value
		default:
			assign(c[at], path[1:], value)
		}
	}
}

// unset deletes the key at the path. Elements of lists stay: without them all
// later ones would have other places.
func unset(body map[string]any, path []string) {
	parent, ok := lookup(body, path[:len(path)-1])
	if m, isMap := parent.(map[string]any); ok && isMap {
		delete(m, path[len(path)-1])
	}
}

func index(list []any, segment string) (int, bool) {
	at, err := strconv.Atoi(segment)
	return at, err == nil && at >= 0 && at < len(list)
}

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

// desiredReplicas is the number of replicas that a manifest asks for, of an object
// that can be scaled; nil if it asks for none.
func (e *Executor) desiredReplicas(ctx context.Context, resource cluster.Resource, manifest *unstructured.Unstructured) *int64 {
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

// asksForOtherReplicas reports whether the manifest asks for another number of replicas than
// when it was last written, and no autoscaler decides about it.
func (e *Executor) asksForOtherReplicas(ctx context.Context, resource cluster.Resource, step plan.Step) bool {
	before, desired := step.ItemAfter.Replicas, e.desiredReplicas(ctx, resource, step.Desired.Manifest)
	return !step.Autoscaled && before != nil && desired != nil && *before != *desired
}

// leftFields are the fields that a write leaves as they are: the ignored fields,
// and the number of replicas if it was set through the subresource scale, unless the manifest asks
// for another number than before.
func (e *Executor) leftFields(ctx context.Context, resource cluster.Resource, step plan.Step) ([][]string, error) {
	var ignored [][]string
	for _, pointer := range step.Desired.Policies.IgnoreFields {
		ignored = append(ignored, split(pointer))
	}
	if !step.Scaled || !resource.Has("scale") || e.asksForOtherReplicas(ctx, resource, step) {
		return ignored, nil
	}
	path, err := e.replicasPath(ctx, resource)
	if err != nil || !owned.IsSet(step.Desired.Manifest.Object, path...) {
		return ignored, err
	}
	return append(ignored, path), nil
}

// noteScaled notes that a changed manifest does not decide about the number of
// replicas, if it asks for another one than there is.
func (e *Executor) noteScaled(ctx context.Context, resource cluster.Resource, step plan.Step, live *unstructured.Unstructured) []plan.Note {
	if !step.Scaled || step.Reason != plan.ReasonManifestChanged {
		return nil
	}
	path, err := e.replicasPath(ctx, resource)
	if err != nil {
		return nil
	}
	desired, asked, _ := unstructured.NestedFieldNoCopy(step.Desired.Manifest.Object, path...)
	actual, _, _ := unstructured.NestedFieldNoCopy(live.Object, path...)
	if !asked || equality.Semantic.DeepEqual(desired, actual) {
		return nil
	}
	return []plan.Note{{Key: step.Key, Reason: report.NoteLeftAlone, Message: fmt.Sprintf(
		"left alone: %s, which was set through the subresource scale", strings.Join(path, "."))}}
}
