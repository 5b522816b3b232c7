// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Status is the part of a component's status that belongs to Corbel. Embed it
// inline into the status of your own type.
//
// The custom resource definition must have the status subresource, and should
// default status.observedGeneration to -1, because tools take an empty status for
// a good one:
//
//	// +kubebuilder:default={"observedGeneration":-1}
//	Status ShopStatus `json:"status,omitempty"`
//
// +kubebuilder:object:generate=true
type Status struct {
	// ObservedGeneration is the generation of the component that the rest of the
	// status was judged for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// AppliedGeneration is the generation of the component whose dependent
	// objects were last all applied and ready.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// Revision counts the changes of what the dependent objects are rendered from: the
	// generator, its parameters, the patches of the component, and what references hold.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// InstalledRevision is the first revision whose dependent objects were all applied
	// and ready or, as long as there is none, the latest. It is rendered as the
	// installation, and so are those before it.
	// +optional
	InstalledRevision int64 `json:"installedRevision,omitempty"`

	// State is the component's condition in one word.
	// +optional
	State v1alpha1.State `json:"state,omitempty"`

	// Progress says how many of the dependent objects are settled, such as "12/17".
	// +optional
	Progress string `json:"progress,omitempty"`

	// Conditions are Ready and, while they apply, Reconciling or Stalled.
	// +optional
	// +patchMergeKey=type
	// +patchStrategy=merge
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`

	// LastAppliedAt is when dependent objects were last written and became ready.
	// +optional
	LastAppliedAt *metav1.Time `json:"lastAppliedAt,omitempty"`

	// ProcessingSince is when the current attempt to become ready began: with
	// the last change of the component or of its manifests. The timeout counts
	// from here. It is empty while the component is ready, is suspended or lacks a right;
	// once the right is granted, the timeout goes on.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// ProcessingDigest identifies the state of the component and of its
	// manifests that is, or was last, processed.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// Inventory is the record of the dependent objects.
	// +optional
	Inventory v1alpha1.Inventory `json:"inventory,omitzero"`
}

// IsReady reports whether the component is ready. The status may be about an older
// generation of the component: compare ObservedGeneration.
func (s *Status) IsReady() bool {
	return s != nil && s.State == v1alpha1.StateReady
}

// GetState returns the state, and the reason and the message of condition Ready.
// All are empty if the component was not seen yet.
func (s *Status) GetState() (state State, reason, message string) {
	if s == nil {
		return "", "", ""
	}
	if ready := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionReady); ready != nil {
		reason, message = ready.Reason, ready.Message
	}
	return s.State, reason, message
}

// progress returns the form of Status.Progress.
func progress(settled, total int) string {
	return fmt.Sprintf("%d/%d", settled, total)
}
