// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"maps"
	"slices"
	"text/template"
)

// Ordered returns the functions of sprig whose result has another order with
// every call, with one that is always the same.
func Ordered() template.FuncMap {
	return template.FuncMap{"keys": sortedKeys, "values": sortedValues}
}

// sortedKeys returns the keys of the maps, map by map, in their order. The
// order of the function in the library changes from call to call, and so would
// the manifests.
func sortedKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = append(keys, slices.Sorted(maps.Keys(dict))...)
	}
	return keys
}

// sortedValues returns the values in the order of their keys.
func sortedValues(dict map[string]any) []any {
	values := make([]any, 0, len(dict))
	for _, key := range sortedKeys(dict) {
		values = append(values, dict[key])
	}
	return values
}
