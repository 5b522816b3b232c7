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
	// Mode of the store. The chart sets "cluster" by default.
	// +optional
	// +kubebuilder:validation:Enum={"single","cluster"}
	Mode *string `json:"mode,omitempty"`

	// The chart sets 3 by default.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	Replicas *int64 `json:"replicas,omitempty"`

	// The chart sets 8080 by default.
	// +optional
	// +kubebuilder:validation:XIntOrString
	Port *intstr.IntOrString `json:"port,omitempty"`

	// The chart sets 0.75 by default.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=number
	// +kubebuilder:validation:Minimum=0.25
	// +kubebuilder:validation:Maximum=1
	Threshold *apiextensionsv1.JSON `json:"threshold,omitempty"`

	// The chart sets {"limits":{"memory":"1Gi"}} by default.
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// The chart sets [{"key":"dedicated","operator":"Exists"}] by default.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitzero"`

	// The chart sets {"main":{"url":"https://example.com","weight":10}} by default.
	// +optional
	Backends map[string]StoreValuesBackends `json:"backends,omitzero"`

	// +optional
	Storage *StoreValuesStorage `json:"storage,omitempty"`

	// The chart sets ["a","b"] by default.
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
	// +optional
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
	// The chart sets "10Gi" by default.
	// +optional
	// +kubebuilder:validation:MinLength=2
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
