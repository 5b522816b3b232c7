// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// +kubebuilder:object:generate=true
// +groupName=dashboard.example.com
// +versionName=v1alpha1
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// DashboardSpec is what a user of a Dashboard decides. The kustomization gets it as the values of its templates.
type DashboardSpec struct {
	component.TimeoutSpec `json:",inline"`
	// Title is the headline of the dashboard.
	// +optional
	// +kubebuilder:default="Overview"
	Title string `json:"title"`
}

// Dashboard is a web page with charts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
type Dashboard struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec DashboardSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status component.Status `json:"status,omitempty"`
}

// GetSpec returns the parameters of the generator.
func (c *Dashboard) GetSpec() types.Unstructurable { return component.ParametersOf(&c.Spec) }

// GetStatus returns the status that Corbel writes.
func (c *Dashboard) GetStatus() *component.Status { return &c.Status }

// DashboardList is a list of Dashboards.
//
// +kubebuilder:object:root=true
type DashboardList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Dashboard `json:"items"`
}

var schemeBuilder = runtime.NewSchemeBuilder(func(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: name, Version: "v1alpha1"}
	scheme.AddKnownTypes(version, &Dashboard{}, &DashboardList{})
	metav1.AddToGroupVersion(scheme, version)
	return nil
})
