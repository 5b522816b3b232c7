// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package schema

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StoreValues has the values of the chart that are typed.
type StoreValues struct {
	// Mode of the store.
	// +optional
	// +kubebuilder:validation:Enum={"single","cluster"}
	// +kubebuilder:default="cluster"
	Mode *string `json:"mode,omitempty"`

	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	// +kubebuilder:default=3
	Replicas *int64 `json:"replicas,omitempty"`

	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:default=8080
	Port *intstr.IntOrString `json:"port,omitempty"`

	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=number
	// +kubebuilder:validation:Minimum=0.25
	// +kubebuilder:validation:Maximum=1
	// +kubebuilder:default=0.75
	Threshold *apiextensionsv1.JSON `json:"threshold,omitempty"`

	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitzero"`

	// +optional
	Backends map[string]StoreValuesBackends `json:"backends,omitzero"`

	// +optional
	Storage *StoreValuesStorage `json:"storage,omitempty"`

	// +optional
	// +kubebuilder:validation:items:Enum={"a","b","c;d","e\"f"}
	Features []string `json:"features,omitzero"`

	// +optional
	Tree *StoreValuesTree `json:"tree,omitempty"`

	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Custom *apiextensionsv1.JSON `json:"custom,omitempty"`

	// Key of the license. +kubebuilder:default="none"
	// +required
	// +kubebuilder:validation:MinLength=1
	License *string `json:"license,omitempty"`

	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Remote *apiextensionsv1.JSON `json:"remote,omitempty"`
}

// StoreValuesBackends has the values below backends.
type StoreValuesBackends struct {
	// +optional
	// +kubebuilder:validation:Pattern="^https?://[\"`]?"
	URL *string `json:"url,omitempty"`

	// +optional
	Weight *int64 `json:"weight,omitempty"`
}

// StoreValuesStorage has the values below storage.
type StoreValuesStorage struct {
	// +optional
	// +kubebuilder:validation:MinLength=2
	// +kubebuilder:default="10Gi"
	Size *string `json:"size,omitempty"`

	// +optional
	Class *string `json:"class,omitempty"`
}

// StoreValuesTree has the values below tree.
type StoreValuesTree struct {
	// +optional
	Left *StoreValuesTreeLeft `json:"left,omitempty"`

	// +optional
	Name *string `json:"name,omitempty"`
}

// StoreValuesTreeLeft has the values below tree.left.
type StoreValuesTreeLeft struct {
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	Left *apiextensionsv1.JSON `json:"left,omitempty"`

	// +optional
	Name *string `json:"name,omitempty"`
}
