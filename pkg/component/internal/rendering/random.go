// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// randomParts are the parts of manifests that each rendering makes anew, such as passwords, and
// the checksums of what contains them.
type randomParts struct {
	Values []randomValue `json:"values,omitempty"`
	Groups []randomGroup `json:"groups,omitempty"`
}

// randomValue is the value of a field that two renderings have in common.
type randomValue struct {
	Object objectID `json:"object"`
	// Path leads to the field: keys of maps, and indexes of lists as JSON numbers.
	Path  []any `json:"path"`
	Value any   `json:"value"`
}

// place identifies the field.
func (v randomValue) place() string { return fmt.Sprintf("%q %q", v.Object, v.Path) }

// randomGroup are the objects of one type in one namespace with random names.
type randomGroup struct {
	objectGroup
	// Fixed are the names of those that are in each rendering.
	Fixed   []string         `json:"fixed,omitempty"`
	Objects []map[string]any `json:"objects"`
}

type objectGroup struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
}

type objectID struct {
	objectGroup
	Name string `json:"name"`
}

// decodeParts is the inverse of the encoding as JSON. The values are those that the objects of
// an API have: whole numbers are of the type int64.
func decodeParts(encoded []byte) (parts randomParts, err error) {
	return parts, utiljson.Unmarshal(encoded, &parts)
}

// untypedOf returns the objects whose fields can be found by a path, by their identity and in
// order. Of two with the same identity, which the engine refuses, it is the first.
func untypedOf(objects []client.Object) (ids []objectID, byID map[objectID]*unstructured.Unstructured) {
	byID = map[objectID]*unstructured.Unstructured{}
	for _, object := range objects {
		u, ok := object.(*unstructured.Unstructured)
		if !ok || u == nil {
			continue
		}
		id := objectID{objectGroup{u.GetAPIVersion(), u.GetKind(), u.GetNamespace()}, u.GetName()}
		if byID[id] == nil {
			ids, byID[id] = append(ids, id), u
		}
	}
	return ids, byID
}

// randomIn returns the parts of a rendering that another rendering of the same input has
// not, or has other values for. They share their values with the objects.
func randomIn(objects, again []client.Object) randomParts {
	ids, byID := untypedOf(objects)
	_, others := untypedOf(again)
	var parts randomParts
	named, fixed := map[objectGroup][]map[string]any{}, map[objectGroup][]string{}
	for _, id := range ids {
		other, found := others[id]
		if !found {
			named[id.objectGroup] = append(named[id.objectGroup], byID[id].Object)
			continue
		}
		fixed[id.objectGroup] = append(fixed[id.objectGroup], id.Name)
		differing(nil, byID[id].Object, other.Object, func(path []any, value any) {
			parts.Values = append(parts.Values, randomValue{Object: id, Path: path, Value: value})
		})
	}
	for _, id := range ids { // in the order of the rendering
		objects, ok := named[id.objectGroup]
		if !ok {
			continue
		}
		delete(named, id.objectGroup)
		parts.Groups = append(parts.Groups, randomGroup{objectGroup: id.objectGroup, Fixed: fixed[id.objectGroup], Objects: objects})
	}
	return parts
}

// differing calls emit for the smallest parts of a that differ from b. A map that has another key,
// or a list of another length, is such a part.
func differing(path []any, a, b any, emit func(path []any, value any)) {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		keys := slices.Sorted(maps.Keys(x))
		if ok && slices.Equal(keys, slices.Sorted(maps.Keys(y))) {
			for _, key := range keys {
				differing(append(slices.Clip(path), key), x[key], y[key], emit)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				differing(append(slices.Clip(path), int64(i)), x[i], y[i], emit)
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		emit(path, a)
	}
}

// keep returns the parts with the values that the earlier ones have for them.
func (p randomParts) keep(earlier randomParts) randomParts {
	kept := randomParts{Values: slices.Clone(p.Values), Groups: slices.Clone(p.Groups)}
	values := map[string]any{}
	for _, value := range earlier.Values {
		values[value.place()] = value.Value
	}
	for i, value := range kept.Values {
		if before, found := values[value.place()]; found {
			kept.Values[i].Value = before
		}
	}
	for i, group := range kept.Groups {
		at := slices.IndexFunc(earlier.Groups, func(e randomGroup) bool {
			return e.objectGroup == group.objectGroup && len(e.Objects) == len(group.Objects)
		})
		if at >= 0 {
			kept.Groups[i].Objects = earlier.Groups[at].Objects
		}
	}
	return kept
}

// restore gives the objects the values of the parts. What is not in the objects, because
// they have another structure now, is left out.
func (p randomParts) restore(objects []client.Object) {
	ids, byID := untypedOf(objects)
	for _, value := range p.Values {
		if object := byID[value.Object]; object != nil {
			replace(object.Object, value.Path, value.Value)
		}
	}
	for _, group := range p.Groups {
		var random []*unstructured.Unstructured
		for _, id := range ids {
			if id.objectGroup == group.objectGroup && !slices.Contains(group.Fixed, id.Name) {
				random = append(random, byID[id])
			}
		}
		if len(random) != len(group.Objects) {
			continue
		}
		for i, object := range random {
			object.Object = runtime.DeepCopyJSON(group.Objects[i])
		}
	}
}

// replace changes the value at a path, if there is one.
func replace(node any, path []any, value any) {
	for i, step := range path {
		last := i == len(path)-1
		switch key := step.(type) {
		case string:
			inMap, _ := node.(map[string]any)
			if _, found := inMap[key]; !found {
				return
			}
			if last {
				inMap[key] = runtime.DeepCopyJSONValue(value)
			}
			node = inMap[key]
		case int64:
			inList, _ := node.([]any)
			if key < 0 || key >= int64(len(inList)) {
				return
			}
			if last {
				inList[key] = runtime.DeepCopyJSONValue(value)
			}
			node = inList[key]
		default:
			return
		}
	}
}
