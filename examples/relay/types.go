// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=relay.example.com
// +versionName=v1alpha1
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// RelaySpec has only fields that Corbel reads: the manifests are always the same.
type RelaySpec struct {
	component.TimeoutSpec    `json:",inline"`
	component.SuspensionSpec `json:",inline"`
}

// Relay forwards mail.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type Relay struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec RelaySpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status component.Status `json:"status,omitempty"`
}

// GetSpec returns the parameters of the generator.
func (c *Relay) GetSpec() types.Unstructurable { return component.ParametersOf(&c.Spec) }

// GetStatus returns the status that Corbel writes.
func (c *Relay) GetStatus() *component.Status { return &c.Status }

// RelayList is a list of Relays.
//
// +kubebuilder:object:root=true
type RelayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Relay `json:"items"`
}

var schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: name, Version: "v1alpha1"}
	scheme.AddKnownTypes(version, &Relay{}, &RelayList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
})
