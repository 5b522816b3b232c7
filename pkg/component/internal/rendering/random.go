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

// place identifies the type and the namespace.
func (g randomGroup) place() string { return fmt.Sprintf("%q", g.objectGroup) }

type objectGroup struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
}

type objectID struct {
	objectGroup
	Name string `json:"name"`
}

func idOf(u *unstructured.Unstructured) objectID {
	return objectID{objectGroup{u.GetAPIVersion(), u.GetKind(), u.GetNamespace()}, u.GetName()}
}

// object returns an object that has nothing but the identity.
func (id objectID) object() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(id.APIVersion)
	u.SetKind(id.Kind)
	u.SetNamespace(id.Namespace)
	u.SetName(id.Name)
	return u
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
		id := idOf(u)
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
	steps := stepsOf(a)
	isOther := func(other any) bool {
		return reflect.TypeOf(a) != reflect.TypeOf(other) || !slices.Equal(steps, stepsOf(other))
	}
	if steps == nil || slices.ContainsFunc(others, isOther) {
		if slices.ContainsFunc(others, func(other any) bool { return !reflect.DeepEqual(a, other) }) {
			emit(path, a)
		}
		return
	}
	for _, step := range steps {
		value, _ := valueAt(a, []any{step})
		inOthers := make([]any, len(others))
		for i, other := range others {
			inOthers[i], _ = valueAt(other, []any{step})
		}
		differing(append(slices.Clip(path), step), value, inOthers, emit)
	}
}

// stepsOf returns the keys of a map or the indexes of a list; nil for another value.
func stepsOf(value any) (steps []any) {
	switch x := value.(type) {
	case map[string]any:
		steps = make([]any, 0, len(x))
		for _, key := range slices.Sorted(maps.Keys(x)) {
			steps = append(steps, key)
		}
	case []any:
		steps = make([]any, 0, len(x))
		for i := range x {
			steps = append(steps, int64(i))
		}
	}
	return steps
}

// isEmpty reports whether there are no parts.
func (p randomParts) isEmpty() bool { return len(p.Values) == 0 && len(p.Groups) == 0 }

// places are the indexes of the values and of the groups by what identifies them.
func (p randomParts) places() map[string]int {
	places := map[string]int{}
	for i, value := range p.Values {
		places[value.place()] = i
	}
	for i, group := range p.Groups {
		places[group.place()] = i
	}
	return places
}

// has reports whether all places of the earlier parts are places of these, too.
func (p randomParts) has(earlier randomParts) bool {
	places := p.places()
	for place := range earlier.places() {
		if _, found := places[place]; !found {
			return false
		}
	}
	return true
}

// keep returns the parts with the values that the earlier ones have for them. Parts that are not random any
// more in the objects of a rendering stay as they were: the generator looks up what it has made. They
// follow the rendering when it changes from what it first was without being random.
func (p randomParts) keep(earlier randomParts, objects []client.Object) randomParts {
	kept := randomParts{Values: slices.Clone(p.Values), Groups: slices.Clone(p.Groups)}
	places, rendered := p.places(), byPathOf(objects)
	for _, value := range earlier.Values {
		if i, found := places[value.place()]; found {
			kept.Values[i].Value = value.Value
			continue
		}
		object := rendered.byID[value.Object]
		if object == nil {
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
	for _, before := range earlier.Groups {
		if i, found := places[before.place()]; found {
			now := slices.Clone(kept.Groups[i].Objects)
			copy(now, before.Objects)
			kept.Groups[i].Objects = now
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
		var random []*unstructured.Unstructured
		for _, id := range rendered.ids {
			if id.objectGroup == group.objectGroup && !slices.Contains(group.Fixed, id.Name) {
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
		exists := false
		switch key := step.(type) {
		case string:
			inMap, _ := node.(map[string]any)
			node, exists = inMap[key]
		case int64:
			inList, _ := node.([]any)
			if exists = key >= 0 && key < int64(len(inList)); exists {
				node = inList[key]
			}
		}
		if !exists {
			return nil, false
		}
	}
	return node, true
}

// replace changes the value at a path, if there is one.
func replace(node any, path []any, value any) {
	if _, exists := valueAt(node, path); !exists {
		return
	}
	last := len(path) - 1
	holder, _ := valueAt(node, path[:last])
	switch key := path[last].(type) {
	case string:
		holder.(map[string]any)[key] = runtime.DeepCopyJSONValue(value)
	case int64:
		holder.([]any)[key] = runtime.DeepCopyJSONValue(value)
	}
}
