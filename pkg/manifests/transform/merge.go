// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

// merge merges a patch into the object, by the rules of its type if that is one
// of Kubernetes. It returns nil if the patch deletes the object. The object keeps
// its type, name and namespace.
func merge(object, patch *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	content := runtime.DeepCopyJSON(patch.Object)
	if content["$patch"] == "delete" {
		return nil, nil
	}
	before := &unstructured.Unstructured{Object: map[string]any{}}
	before.SetGroupVersionKind(object.GroupVersionKind())
	before.SetName(object.GetName())
	before.SetNamespace(object.GetNamespace())
	merged, err := mergeContent(object, content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", convert.Name(before), err)
	}
	result := &unstructured.Unstructured{Object: merged}
	result.SetGroupVersionKind(before.GroupVersionKind())
	result.SetName(before.GetName())
	result.SetNamespace(before.GetNamespace())
	return result, nil
}

func mergeContent(object *unstructured.Unstructured, patch map[string]any) (map[string]any, error) {
	if typed, err := scheme.Scheme.New(object.GroupVersionKind()); err == nil {
		return strategicpatch.StrategicMergeMapPatch(object.Object, patch, typed)
	}
	if patch["$patch"] == "replace" {
		delete(patch, "$patch")
		return patch, nil
	}
	return mergeMap(object.Object, patch), nil
}

// mergeMap merges as a JSON merge patch does (RFC 7386).
func mergeMap(into, patch map[string]any) map[string]any {
	if into == nil {
		into = map[string]any{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(into, key)
		case map[string]any:
			below, _ := into[key].(map[string]any)
			into[key] = mergeMap(below, value)
		default:
			into[key] = value
		}
	}
	return into
}
