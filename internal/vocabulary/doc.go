// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package vocabulary has the serialised names and values of the API that only Corbel itself needs in Go: the
// annotations and labels of components, the reasons of conditions, and the values of the inventory. Users meet
// them in YAML. The names that they write in Go are in api/v1alpha1.
package vocabulary
