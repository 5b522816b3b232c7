// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// autoscalers are the field managers of autoscalers: the controller of
// HorizontalPodAutoscalers, and KEDA, which scales to and from zero by itself.
var autoscalers = []string{"kube-controller-manager", "keda", "keda-operator"}

// scalingOf returns the number of replicas that was set through the subresource
// scale; nil if none was.
func scalingOf(live *unstructured.Unstructured) *plan.Scaling {
	for _, raw := range managed(live) {
		raw, ok := raw.(map[string]any)
		if !ok || raw["subresource"] != "scale" {
			continue
		}
		entry := entryOf(raw, "")
		for _, path := range leaves(nil, nil, entry.fields) {
			replicas, _, _ := unstructured.NestedInt64(live.Object, path...)
			return &plan.Scaling{
				Path: strings.Join(path, "."), Replicas: replicas, Manager: strings.Clone(entry.manager), At: entry.at,
				Autoscaler: slices.Contains(autoscalers, entry.manager),
			}
		}
	}
	return nil
}

// scaledPaths are the fields that somebody has set through the subresource scale, as
// autoscalers do. They are his until somebody else sets them.
func scaledPaths(live *unstructured.Unstructured) [][]string {
	var paths [][]string
	for _, entry := range managed(live) {
		if entry, ok := entry.(map[string]any); ok && entry["subresource"] == "scale" {
			fields, _ := entry["fieldsV1"].(map[string]any)
			paths = leaves(paths, nil, fields)
		}
	}
	return paths
}

func leaves(paths [][]string, at []string, fields map[string]any) [][]string {
	for name, value := range fields {
		key, isField := strings.CutPrefix(name, "f:")
		inner, ok := value.(map[string]any)
		switch {
		case !isField || !ok || at == nil && (key == "metadata" || key == "status"):
		case len(inner) == 0:
			paths = append(paths, append(at[:len(at):len(at)], key))
		default:
			paths = leaves(paths, append(at[:len(at):len(at)], key), inner)
		}
	}
	return paths
}

// withoutScale returns the content of the live object in which the fields that were
// set through the subresource scale are as the manifest has them. The object itself
// is not changed.
func withoutScale(live, manifest *unstructured.Unstructured) map[string]any {
	content := live.Object
	for _, path := range scaledPaths(live) {
		wanted, there, err := unstructured.NestedFieldNoCopy(manifest.Object, path...)
		if there && err == nil {
			content = with(content, wanted, path)
		}
	}
	return content
}

// with returns a copy with another value at a path, of whose maps only those on the
// way are copied.
func with(content map[string]any, value any, path []string) map[string]any {
	copied := maps.Clone(content)
	if copied == nil {
		copied = map[string]any{}
	}
	if len(path) == 1 {
		copied[path[0]] = value
		return copied
	}
	inner, _ := copied[path[0]].(map[string]any)
	copied[path[0]] = with(inner, value, path[1:])
	return copied
}
