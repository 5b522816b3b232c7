// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ComponentStatus is the part of a component's status that belongs to Corbel. Embed it
// inline into the status of your own type.
//
// The custom resource definition must have the status subresource, and should
// default status.observedGeneration to -1, because tools mistake an empty status for
// a good one:
//
//	// +kubebuilder:default={"observedGeneration":-1}
//	Status ShopStatus `json:"status,omitempty"`
//
// These columns of kubectl get, copied to the type, tell a user most of it:
//
//	// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
//	// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
//	// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.status.revision`
//	// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
//	// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
//
// +kubebuilder:object:generate=true
type ComponentStatus struct {
	// ObservedGeneration is the generation of the component that the status was computed for.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// AppliedGeneration is the latest generation for which all dependent objects were applied and ready; during a
	// rollback, those of the earlier revision.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// Revision counts the changes of the inputs of the manifests: the generator, its parameters, the patches, and
	// the content of references.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// InstalledRevision is the first revision for which all dependent objects were applied and ready or, before
	// that, the latest. Revisions up to it are rendered as an installation.
	// +optional
	InstalledRevision int64 `json:"installedRevision,omitempty"`

	// Source describes the input of the revision; it is empty if the generator does not report it.
	// +optional
	Source *Source `json:"source,omitempty"`

	// History are the last revisions, the newest first, and the last ready one.
	// +optional
	// +listType=atomic
	History []RevisionStatus `json:"history,omitempty"`

	// Rollback is set while an earlier revision is applied because a later one failed.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// AdoptedRelease is the Helm release that the component has taken over, or is taking over until
	// appliedGeneration is set.
	// +optional
	AdoptedRelease *AdoptedRelease `json:"adoptedRelease,omitempty"`

	// RestoredFrom is the uid of the former owner of the objects, if the component was restored from a backup.
	// +optional
	RestoredFrom types.UID `json:"restoredFrom,omitempty"`

	// Outputs are the values that the component publishes, without secret outputs.
	// +optional
	Outputs map[string]string `json:"outputs,omitempty"`

	// SecretOutputs are the names of the secret outputs. Their values are in the Secret with the name of the
	// component and the suffix -outputs.
	// +optional
	// +listType=atomic
	SecretOutputs []string `json:"secretOutputs,omitempty"`

	// OutputsDigest identifies the values of the secret outputs, by a key of the operator.
	// +optional
	OutputsDigest string `json:"outputsDigest,omitempty"`

	// Approval is set while the next revision waits for its approval.
	// +optional
	Approval *PendingApproval `json:"approval,omitempty"`

	// Reconciler is the name of the reconciler: the prefix of the labels and annotations of the dependent objects.
	// +optional
	Reconciler string `json:"reconciler,omitempty"`

	// OwnerID is the value of the label owner-id of the dependent objects.
	// +optional
	OwnerID string `json:"ownerID,omitempty"`

	// State is the component's condition in one word.
	// +optional
	State State `json:"state,omitempty"`

	// Progress counts the finished dependent objects, such as "12/17": applied and ready or, in deletion, gone.
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

	// ProcessingSince is when the current attempt to become ready started, from which the timeout counts. It is
	// empty while the component is ready, is suspended or lacks a right.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// ProcessingDigest identifies the state of the component and its manifests that is, or was last, processed.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// LastHandledReconcileAt is the value of the annotation reconcile-at, or reconcile.fluxcd.io/requestedAt, of
	// the last full reconcile.
	// +optional
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`

	// Inventory is the record of the dependent objects.
	// +optional
	Inventory Inventory `json:"inventory,omitzero"`
}

// IsReady reports whether the component is ready. The status may be about an older
// generation of the component: compare ObservedGeneration.
func (s *ComponentStatus) IsReady() bool {
	return s != nil && s.State == StateReady
}

// GetState returns the state, and the reason and the message of condition Ready.
// All are empty before the first reconcile of the component.
func (s *ComponentStatus) GetState() (state State, reason, message string) {
	if s == nil {
		return "", "", ""
	}
	if ready := apimeta.FindStatusCondition(s.Conditions, ConditionReady); ready != nil {
		reason, message = ready.Reason, ready.Message
	}
	return s.State, reason, message
}
