// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/pkg/steps"
)

// BucketSpec is what the user of a Bucket decides.
type BucketSpec struct {
	// Quota is how many objects the bucket may hold.
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=1
	// +optional
	Quota int64 `json:"quota,omitempty"`
}

// BucketStatus is what the operator reports.
type BucketStatus struct {
	// ObservedGeneration is the generation of the spec that was dealt with.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// External says which bucket of the service this is.
	// +optional
	External external.Record `json:"external,omitempty"`
	// Quota is that of the bucket of the service.
	// +optional
	Quota int64 `json:"quota,omitempty"`
	// Steps are done once in the life of the bucket.
	// +optional
	Steps steps.Conditions `json:"steps,omitempty"`
	// Conditions are Ready, Reconciling and Stalled.
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Bucket is a bucket of the bucket service.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Bucket",type=string,JSONPath=`.status.external.name`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +kubebuilder:default={}
	Spec BucketSpec `json:"spec,omitempty"`
	// +kubebuilder:default={"observedGeneration":-1}
	Status BucketStatus `json:"status,omitempty"`
}

// GetExternal implements external.Object.
func (b *Bucket) GetExternal() *external.Record { return &b.Status.External }

// Conditions implements steps.ConditionalResource.
func (b *Bucket) Conditions() *steps.Conditions { return &b.Status.Steps }

// GetConditions implements conditions.Getter.
func (b *Bucket) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions implements conditions.Setter.
func (b *Bucket) SetConditions(conditions []metav1.Condition) { b.Status.Conditions = conditions }

// BucketList is a list of Buckets.
//
// +kubebuilder:object:root=true
type BucketList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Bucket `json:"items"`
}
