// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

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

// condition is an entry of status.conditions. A missing value or one of a wrong type is empty.
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

// maxMessage bounds messages, in bytes.
const maxMessage = 200

// explain joins a short word and its explanation, either of which may be missing.
func explain(reason, message string) string {
	switch {
	case reason == "":
		return message
	case message == "":
		return reason
	default:
		return reason + ": " + message
	}
}

// sentence makes any text one line of bounded length.
func sentence(message string) string {
	// The messages of an object may be very long; only the start is looked at.
	if len(message) > 4*maxMessage {
		message = message[:4*maxMessage]
	}
	message = strings.ToValidUTF8(message, "")
	message = strings.Join(strings.FieldsFunc(message, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if len(message) <= maxMessage {
		return message
	}
	const ellipsis = "..."
	end := maxMessage - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
