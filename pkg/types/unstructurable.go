// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

// Unstructurable is anything that can be turned into a JSON-like map. The spec
// of a component implements it; generators get it as their parameters.
type Unstructurable interface {
	// ToUnstructured returns the value as a map of JSON types. The caller must
	// not change it.
	ToUnstructured() map[string]any
}

// UnstructurableMap makes a map an Unstructurable.
type UnstructurableMap map[string]any

// ToUnstructured returns the map itself.
func (m UnstructurableMap) ToUnstructured() map[string]any { return m }
