// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// free is the field of a spec that takes any value, in the layout of corbel init.
const free = "values"

// ownFields are the fields of a spec that say how Corbel works, and are no values of a chart.
var ownFields = []string{
	"adoptionPolicy", "additionalManagedTypes", "deletePolicy", "driftPolicy", "images", "impersonationGroups", "impersonationUser", "kubeConfig", "missingNamespacesPolicy",
	"name", "namespace", "patches", "reapplyInterval", "requeueInterval", "retryInterval", "rollbackOnFailure", "serviceAccountName",
	"suspend", "suspendReason", "suspendUntil", "timeout", "updatePolicy", free,
}

// specOf returns the spec that gives a chart its values, and the paths of those that have no place in it. A value is put
// into the field of its path or, if there is none, below the free field.
func specOf(values map[string]any, schema apiextensionsv1.JSONSchemaProps) (spec map[string]any, unmapped []string) {
	m := &mapping{spec: map[string]any{}, anything: isOpen(schema.Properties[free])}
	fields := schema
	fields.Properties = maps.Clone(schema.Properties)
	for _, own := range ownFields {
		delete(fields.Properties, own)
	}
	m.add(nil, values, fields)
	return m.spec, m.unmapped
}

// isOpen reports whether a field takes any object.
func isOpen(schema apiextensionsv1.JSONSchemaProps) bool {
	return schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
}

// mapping is a spec in the making.
type mapping struct {
	spec     map[string]any
	anything bool // there is a free field
	unmapped []string
}

// add adds the values at a path of objects with a schema.
func (m *mapping) add(path []string, values map[string]any, schema apiextensionsv1.JSONSchemaProps) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, at := values[key], append(slices.Clone(path), key)
		field, exists := schema.Properties[key]
		inner, isObject := value.(map[string]any)
		switch {
		case exists && isObject && len(field.Properties) > 0 && len(inner) > 0:
			m.add(at, inner, field)
		case exists && (value != nil || field.Nullable) && (isObject || value == nil || field.Type != "object"): // no text for a reference to a Secret
			put(m.spec, at, value)
		case m.anything:
			put(m.spec, append([]string{free}, at...), value)
		default:
			m.unmapped = append(m.unmapped, strings.Join(at, "."))
		}
	}
}

// put sets the value at a path.
func put(object map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		inner, ok := object[key].(map[string]any)
		if !ok {
			inner = map[string]any{}
			object[key] = inner
		}
		object = inner
	}
	object[path[len(path)-1]] = value
}
