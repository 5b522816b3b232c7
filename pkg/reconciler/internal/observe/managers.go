// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// Owns reports whether a field manager owns the field with the path.
func Owns(live *unstructured.Unstructured, manager string, path ...string) bool {
	for _, entry := range managed(live) {
		entry, ok := entry.(map[string]any)
		if !ok || entry["manager"] != manager {
			continue
		}
		fields, _ := entry["fieldsV1"].(map[string]any)
		if _, found, _ := unstructured.NestedFieldNoCopy(fields, path...); found {
			return true
		}
	}
	return false
}

func managed(live *unstructured.Unstructured) []any {
	entries, _, _ := unstructured.NestedFieldNoCopy(live.Object, "metadata", "managedFields")
	list, _ := entries.([]any)
	return list
}
