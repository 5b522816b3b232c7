// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// field returns the value at a path, or nil if there is none.
func field(value any, path ...string) any {
	for _, name := range path {
		fields, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

// text returns the string at a path, or "".
func text(value any, path ...string) string {
	s, _ := field(value, path...).(string)
	return s
}

// count returns the number at a path, or a default.
func count(value any, missing int64, path ...string) int64 {
	if n, ok := integer(field(value, path...)); ok {
		return n
	}
	return missing
}

func integer(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	case int32:
		return int64(v), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), true
		}
	}
	return 0, false
}

// condition is an entry of status.conditions. What is missing or of a wrong type is empty.
type condition struct {
	status, reason, message string
	observedGeneration      any
}

// findCondition returns the first condition of a type.
func findCondition(obj *unstructured.Unstructured, name string) (condition, bool) {
	return conditionIn(field(obj.Object, "status"), name)
}

// conditionIn returns the first condition of a type among the conditions of a part of a status.
func conditionIn(status any, name string) (condition, bool) {
	entries, _ := field(status, "conditions").([]any)
	for _, entry := range entries {
		if text(entry, "type") == name {
			return condition{
				status:             text(entry, "status"),
				reason:             text(entry, "reason"),
				message:            text(entry, "message"),
				observedGeneration: field(entry, "observedGeneration"),
			}, true
		}
	}
	return condition{}, false
}
