// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
)

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

// untouched tells whether all that the patch would write is on the server as it
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

// lost returns the paths below path at which the answer does not hold what was
// sent. Empty values carry no information and are not missed.
func lost(path string, sent, answer any) []string {
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
			paths = append(paths, lost(path+"."+key, value, a[key])...)
		}
		return paths
	case []any:
		a, ok := answer.([]any)
		if !ok || len(a) != len(s) {
			return []string{path}
		}
		var paths []string
		for i, value := range s {
			// The index says nothing: what a schema lacks, it lacks in every element.
			paths = append(paths, lost(path+"[]", value, a[i])...)
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

func sortedUnique(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}
