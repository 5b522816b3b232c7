// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// randomParts are the parts of manifests that each rendering makes anew, such as passwords, and
// the checksums of what contains them.
type randomParts struct {
	Values []randomValue `json:"values,omitempty"`
	Groups []randomGroup `json:"groups,omitempty"`
}

// randomValue is the value of a field.
type randomValue struct {
	Object objectID `json:"object"`
	// Path leads to the field by keys of maps and indexes of lists. It is empty for the whole object.
	Path  []any `json:"path"`
	Value any   `json:"value"`
	// Found is what the first rendering has there that is not random any more.
	Found json.RawMessage `json:"found,omitempty"`
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

// byPath are the objects that a path can lead into.
type byPath struct {
	ids  []objectID // in the order of the rendering
	byID map[objectID]*unstructured.Unstructured
}

// byPathOf leaves out, of objects with the same name, which the engine
// refuses, all but the first.
func byPathOf(objects []client.Object) byPath {
	found := byPath{byID: map[objectID]*unstructured.Unstructured{}}
	for _, object := range objects {
		u := object.(*unstructured.Unstructured)
		id := objectID{objectGroup{u.GetAPIVersion(), u.GetKind(), u.GetNamespace()}, u.GetName()}
		if found.byID[id] == nil {
			found.ids, found.byID[id] = append(found.ids, id), u
		}
	}
	return found
}

// randomIn returns the parts of a rendering that are not in each of the other renderings of the
// same input, or have other values there. They share their values with the objects.
func randomIn(objects []client.Object, others ...[]client.Object) randomParts {
	rendered := byPathOf(objects)
	var again []byPath
	for _, other := range others {
		again = append(again, byPathOf(other))
	}
	var parts randomParts
	named, fixed := map[objectGroup][]map[string]any{}, map[objectGroup][]string{}
	for _, id := range rendered.ids {
		var contents []any
		for _, other := range again {
			if object := other.byID[id]; object != nil {
				contents = append(contents, object.Object)
			}
		}
		if len(contents) < len(again) {
			named[id.objectGroup] = append(named[id.objectGroup], rendered.byID[id].Object)
			continue
		}
		fixed[id.objectGroup] = append(fixed[id.objectGroup], id.Name)
		differing(nil, rendered.byID[id].Object, contents, func(path []any, value any) {
			parts.Values = append(parts.Values, randomValue{Object: id, Path: path, Value: value})
		})
	}
	for _, id := range rendered.ids {
		if objects, ok := named[id.objectGroup]; ok {
			parts.Groups = append(parts.Groups, randomGroup{objectGroup: id.objectGroup, Fixed: fixed[id.objectGroup], Objects: objects})
			delete(named, id.objectGroup)
		}
	}
	return parts
}

// differing calls emit for the smallest parts of a that differ from one of the others. A map that
// has other keys, or a list of another length, is such a part.
func differing(path []any, a any, others []any, emit func(path []any, value any)) {
	switch x := a.(type) {
	case map[string]any:
		keys := slices.Sorted(maps.Keys(x))
		same := func(other any) bool {
			y, ok := other.(map[string]any)
			return ok && slices.Equal(keys, slices.Sorted(maps.Keys(y)))
		}
		if all(others, same) {
			for _, key := range keys {
				differing(append(slices.Clip(path), key), x[key], each(others, func(other any) any { return other.(map[string]any)[key] }), emit)
			}
			return
		}
	case []any:
		same := func(other any) bool {
			y, ok := other.([]any)
			return ok && len(x) == len(y)
		}
		if all(others, same) {
			for i := range x {
				differing(append(slices.Clip(path), int64(i)), x[i], each(others, func(other any) any { return other.([]any)[i] }), emit)
			}
			return
		}
	}
	if !all(others, func(other any) bool { return reflect.DeepEqual(a, other) }) {
		emit(path, a)
	}
}

func all(values []any, holds func(any) bool) bool {
	return !slices.ContainsFunc(values, func(value any) bool { return !holds(value) })
}

func each(values []any, get func(any) any) []any {
	results := make([]any, len(values))
	for i, value := range values {
		results[i] = get(value)
	}
	return results
}

// isEmpty reports whether there are no parts.
func (p randomParts) isEmpty() bool { return len(p.Values) == 0 && len(p.Groups) == 0 }

// equal reports whether the parts are the same, with the same values.
func (p randomParts) equal(other randomParts) bool { return reflect.DeepEqual(p, other) }

// has reports whether all places of the earlier parts are places of these, too.
func (p randomParts) has(earlier randomParts) bool {
	places := map[string]bool{}
	for _, value := range p.Values {
		places[value.place()] = true
	}
	for _, group := range p.Groups {
		places[fmt.Sprintf("%q", group.objectGroup)] = true
	}
	return !slices.ContainsFunc(earlier.Values, func(value randomValue) bool { return !places[value.place()] }) &&
		!slices.ContainsFunc(earlier.Groups, func(group randomGroup) bool { return !places[fmt.Sprintf("%q", group.objectGroup)] })
}

// keep returns the parts with the values that the earlier ones have for them. Parts that are not random any
// more in the objects of a rendering stay as they were: the generator looks up what it has made. They
// follow the rendering when it changes from what it first was without being random.
func (p randomParts) keep(earlier randomParts, objects []client.Object) randomParts {
	kept := randomParts{Values: slices.Clone(p.Values), Groups: slices.Clone(p.Groups)}
	places, rendered := map[string]bool{}, byPathOf(objects)
	for _, value := range p.Values {
		places[value.place()] = true
	}
	for _, value := range earlier.Values {
		object := rendered.byID[value.Object]
		if places[value.place()] || object == nil {
			continue
		}
		now, exists := valueAt(object.Object, value.Path)
		encoded, err := json.Marshal(now)
		if value.Found == nil {
			value.Found = encoded
		}
		if exists && err == nil && bytes.Equal(value.Found, encoded) {
			kept.Values = append(kept.Values, value)
		}
	}
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
		at := slices.IndexFunc(earlier.Groups, func(e randomGroup) bool { return e.objectGroup == group.objectGroup })
		if at >= 0 {
			before := earlier.Groups[at].Objects
			kept.Groups[i].Objects = append(slices.Clone(before[:min(len(before), len(group.Objects))]), group.Objects[min(len(before), len(group.Objects)):]...)
		}
	}
	return kept
}

// restore gives the objects the values of the parts. What is not in the objects, because
// they have another structure now, is left out.
func (p randomParts) restore(objects []client.Object) {
	rendered := byPathOf(objects)
	for _, value := range p.Values {
		object := rendered.byID[value.Object]
		whole, isObject := value.Value.(map[string]any)
		switch {
		case object == nil:
		case len(value.Path) > 0:
			replace(object.Object, value.Path, value.Value)
		case isObject:
			object.Object = runtime.DeepCopyJSON(whole)
		}
	}
	for _, group := range p.Groups {
		fixed := map[string]bool{}
		for _, name := range group.Fixed {
			fixed[name] = true
		}
		var random []*unstructured.Unstructured
		for _, id := range rendered.ids {
			if id.objectGroup == group.objectGroup && !fixed[id.Name] {
				random = append(random, rendered.byID[id])
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

// valueAt returns the value at a path, and reports whether there is one.
func valueAt(node any, path []any) (value any, exists bool) {
	for _, step := range path {
		switch key := step.(type) {
		case string:
			object, ok := node.(map[string]any)
			if node, exists = object[key]; !ok || !exists {
				return nil, false
			}
		case int64:
			list, ok := node.([]any)
			if !ok || key < 0 || key >= int64(len(list)) {
				return nil, false
			}
			node = list[key]
		default:
			return nil, false
		}
	}
	return node, true
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
