// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// ShopSpec is what the user of a Shop decides.
type ShopSpec struct {
	component.RequeueSpec  `json:",inline"`
	component.TimeoutSpec  `json:",inline"`
	component.RollbackSpec `json:",inline"`
	component.PatchesSpec  `json:",inline"`
	ShopValues             `json:",inline"`
}

// ShopValues are the values of the chart.
type ShopValues struct {
	// Replicas is the size of each of the three deployments.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=0
	Replicas int32 `json:"replicas"`
	// Image is the image of the web front end, the API and the worker.
	// +optional
	// +kubebuilder:default="registry.example.com/shop:1.0"
	// +kubebuilder:validation:MinLength=1
	Image string `json:"image"`
	// Greeting is shown to visitors. A change rolls the pods.
	// +optional
	// +kubebuilder:default="Welcome"
	Greeting string `json:"greeting"`
	// DatabaseSecret names a Secret with the key "password".
	// +kubebuilder:validation:MinLength=1
	DatabaseSecret string `json:"databaseSecret"`
	// Discount is the percentage of the promotion of the week.
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Discount int32 `json:"discount"`
	// Cache keeps what the shop asks its database for often.
	// +optional
	// +kubebuilder:default={enabled: true}
	Cache CacheValues `json:"cache"`
}

// CacheValues are the values of the sub-chart.
type CacheValues struct {
	// Enabled is false for a shop without a cache.
	// +optional
	// +kubebuilder:default=true
	Enabled bool `json:"enabled"`
}

// ShopStatus is what Corbel reports.
type ShopStatus struct {
	component.Status `json:",inline"`
}

// Shop is a web shop.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=corbel
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Shop struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ShopSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status ShopStatus `json:"status,omitempty"`
}

// GetSpec returns the values of the chart: the spec without the embedded specs of Corbel.
func (s *Shop) GetSpec() types.Unstructurable { return component.ParametersOf(&s.Spec) }

// GetStatus returns what Corbel keeps about the Shop.
func (s *Shop) GetStatus() *component.Status { return &s.Status.Status }

// ShopList is a list of Shops.
//
// +kubebuilder:object:root=true
type ShopList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Shop `json:"items"`
}
