// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the serialised types of Corbel: the policies, the
// inventory, the states, and the names of the annotations that authors write into manifests. Operators embed these types in their own custom resources, so nothing
// here may change its JSON form without a new version.
//
// The package imports nothing of Corbel. Its types get their everyday names in
// the packages that users work with (pkg/reconciler, pkg/component).
//
// +kubebuilder:object:generate=true
package v1alpha1
