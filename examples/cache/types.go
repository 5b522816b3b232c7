// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=cache.example.com
// +versionName=v1alpha1
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// CacheSpec is what a user of a Cache decides.
type CacheSpec struct {
	component.TimeoutSpec `json:",inline"`
	// Megabytes is the memory for cached items.
	// +optional
	// +kubebuilder:default=64
	// +kubebuilder:validation:Minimum=1
	Megabytes int64 `json:"megabytes"`
}

// CacheStatus is the status of Corbel, and where the cache listens.
type CacheStatus struct {
	component.Status `json:",inline"`
	// Endpoint is host and port of the cache.
	// +optional
	Endpoint string `json:"endpoint,omitempty"`
}

// Cache is an in-memory cache.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Endpoint",type=string,JSONPath=`.status.endpoint`
type Cache struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec CacheSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status CacheStatus `json:"status,omitempty"`
}

// GetSpec returns the parameters of the generator.
func (c *Cache) GetSpec() types.Unstructurable { return component.ParametersOf(&c.Spec) }

// GetStatus returns the status that Corbel writes.
func (c *Cache) GetStatus() *component.Status { return &c.Status.Status }

// CacheList is a list of Caches.
//
// +kubebuilder:object:root=true
type CacheList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cache `json:"items"`
}

var schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: name, Version: "v1alpha1"}
	scheme.AddKnownTypes(version, &Cache{}, &CacheList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
})
