// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// AdvertSpec is what the user of an Advert decides.
type AdvertSpec struct {
	component.RequirementsSpec `json:",inline"`
	// Text is shown to readers.
	// +kubebuilder:validation:MinLength=1
	Text string `json:"text"`
}

// AdvertStatus is what Corbel reports.
type AdvertStatus struct {
	component.Status `json:",inline"`
}

// Advert is a text with the address of a Shop, which it requires with the input shop.address.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=corbel
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type Advert struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec AdvertSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status AdvertStatus `json:"status,omitempty"`
}

// GetSpec returns the spec.
func (a *Advert) GetSpec() types.Unstructurable { return component.ParametersOf(&a.Spec) }

// GetStatus returns what Corbel keeps about the Advert.
func (a *Advert) GetStatus() *component.Status { return &a.Status.Status }

// AdvertList is a list of Adverts.
//
// +kubebuilder:object:root=true
type AdvertList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Advert `json:"items"`
}
