// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	"k8s.io/apimachinery/pkg/api/equality"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// content is an object as JSON has it. Everything is compared in this form: two
// Go values that serialise alike are the same.
type content map[string]any

// writableMetadata are the parts of metadata that a client may change.
var writableMetadata = []string{"labels", "annotations", "finalizers", "ownerReferences"}

func contentOf(obj client.Object) (content, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	var c map[string]any
	// This decoder keeps integers as int64, as unstructured objects have them.
	if err := utiljson.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	dropNulls(c)
	return c, nil
}

func (c content) status() map[string]any {
	status, _ := c["status"].(map[string]any)
	return status
}

// main is the content that is written by way of the object itself: everything but status, and of
// metadata only the fields that a client may change.
func (c content) main(withoutSpec bool) map[string]any {
	main := map[string]any{}
	if !withoutSpec {
		main = maps.Clone(c)
		for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
			delete(main, key)
		}
	}
	metadata, _ := c["metadata"].(map[string]any)
	writable := map[string]any{}
	for _, key := range writableMetadata {
		if value, ok := metadata[key]; ok {
			writable[key] = value
		}
	}
	// It is there even if it is empty: the whole of metadata is never to be removed.
	main["metadata"] = writable
	return main
}

// dropNulls drops null members: a merge patch cannot express them, and they mean the same as absence.
func dropNulls(value any) {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool { return member == nil })
		for _, member := range v {
			dropNulls(member)
		}
	case []any:
		for _, element := range v {
			dropNulls(element)
		}
	}
}

// diff returns the JSON merge patch that leads from before to after. It is empty
// if there is no difference.
func diff(before, after map[string]any) map[string]any {
	patch := map[string]any{}
	for key, value := range after {
		old, existed := before[key]
		if existed && reflect.DeepEqual(old, value) {
			continue
		}
		oldMap, wasMap := old.(map[string]any)
		newMap, isMap := value.(map[string]any)
		if wasMap && isMap {
			patch[key] = diff(oldMap, newMap)
			continue
		}
		patch[key] = value
	}
	for key := range before {
		if _, remains := after[key]; !remains {
			patch[key] = nil
		}
	}
	return patch
}

// untouched reports whether all that the patch would write is on the server as it
// was before.
func untouched(patch, before, server map[string]any) bool {
	for key, value := range patch {
		changes, isMap := value.(map[string]any)
		old, wasMap := before[key].(map[string]any)
		if isMap && wasMap {
			theirs, _ := server[key].(map[string]any)
			if !untouched(changes, old, theirs) {
				return false
			}
			continue
		}
		if !equality.Semantic.DeepEqual(before[key], server[key]) {
			return false
		}
	}
	return true
}

// missingPaths returns the paths below path at which the answer lacks a value that was sent. Empty
// values carry no information and are not missed.
func missingPaths(path string, sent, answer any) []string {
	if isEmpty(sent) && isEmpty(answer) {
		return nil
	}
	switch s := sent.(type) {
	case map[string]any:
		a, ok := answer.(map[string]any)
		if !ok {
			return []string{path}
		}
		var paths []string
		for key, value := range s {
			paths = append(paths, missingPaths(path+"."+key, value, a[key])...)
		}
		return paths
	case []any:
		a, ok := answer.([]any)
		if !ok || len(a) != len(s) {
			return []string{path}
		}
		var paths []string
		for i, value := range s {
			// The index does not matter: a field that a schema lacks is missing in every element.
			paths = append(paths, missingPaths(path+"[]", value, a[i])...)
		}
		return paths
	default:
		if fmt.Sprint(sent) != fmt.Sprint(answer) {
			return []string{path}
		}
		return nil
	}
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	default:
		return false
	}
}
