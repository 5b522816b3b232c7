// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// SharedType is a CustomResourceDefinition that all components of a reconciler share, such as one of the folder crds of a
// chart. It belongs to the reconciler, and to none of the components.
type SharedType struct {
	// Name is the name of the definition, such as shops.shop.example.com.
	Name string
	// Version is the version of its chart; empty if it comes from no chart. A definition is not
	// replaced by one of a lower version.
	Version string
	// Definition is the content; nil if each component renders it.
	Definition *unstructured.Unstructured
}
