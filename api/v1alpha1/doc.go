// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the serialised types of Corbel: the status of a component, the
// policies, the inventory, and the names of the annotations that authors write into manifests.
// Operators embed these types in their own custom resources, so nothing here may change its
// JSON form without a new version.
//
// The package imports nothing of Corbel.
//
// +kubebuilder:object:generate=true
package v1alpha1
