// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package values derives Go types from the values of a Helm chart.
//
// [Learn] returns a tree of fields. The type of a field comes from, in this order:
//
//  1. values.schema.json, as far as the schema of a custom resource can express it,
//  2. typed comments in values.yaml: "@param" lines, helm-docs comments and "@schema" annotations,
//  3. the name of the value, if it is well known and the value fits: resources, tolerations, …,
//  4. the value itself.
//
// A schema or a comment that says no more than "an object" or "a list" leaves the details to the
// sources after it. A value that no source describes is [Any]: it accepts everything.
//
// [Curated] and [Select] reduce the tree, and [GoTypes] writes it as Go structs with kubebuilder markers.
//
// What the Go types cannot express: a null that removes a default of the chart, keys that are not
// in the tree, and fractions where the type is [IntOrString].
package values
