// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

// DeclaresConditions tells whether a version of a type has status conditions in
// its schema. The argument is the content of a CustomResourceDefinition of
// apiextensions.k8s.io/v1. An object of such a type with an empty status has
// most likely not been looked at by its controller yet.
func DeclaresConditions(crd map[string]any, version string) bool {
	versions, _ := field(crd, "spec", "versions").([]any)
	for _, entry := range versions {
		if text(entry, "name") == version {
			return field(entry, "schema", "openAPIV3Schema", "properties", "status", "properties", "conditions") != nil
		}
	}
	return false
}
