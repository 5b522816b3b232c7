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
	// ObservedGeneration is the generation of the component that the rest of the
	// status was computed for. It is set by pkg/patch when the status is written.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// AppliedGeneration is the latest generation of the component for which all
	// dependent objects were applied and ready; while the component is rolled back, those of
	// the earlier revision.
	// +optional
	AppliedGeneration int64 `json:"appliedGeneration,omitempty"`

	// Revision counts the changes of what the dependent objects are rendered from: the
	// generator, its parameters, the patches of the component, and what references hold.
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// InstalledRevision is the first revision for which all dependent objects were applied
	// and ready or, as long as there is none, the latest. It is rendered as the
	// installation, and so are those before it.
	// +optional
	InstalledRevision int64 `json:"installedRevision,omitempty"`

	// Source is what the revision is rendered from; it is empty if the generator does not
	// report it.
	// +optional
	Source *Source `json:"source,omitempty"`

	// History are the last revisions, the newest first, and the last one that was ready. How
	// many there are is an option of the reconciler.
	// +optional
	// +listType=atomic
	History []RevisionStatus `json:"history,omitempty"`

	// Rollback is set while an earlier revision is applied because a later one failed.
	// +optional
	Rollback *Rollback `json:"rollback,omitempty"`

	// AdoptedRelease is the Helm release that the component has taken over, or is taking over as long
	// as appliedGeneration is not set.
	// +optional
	AdoptedRelease *AdoptedRelease `json:"adoptedRelease,omitempty"`

	// RestoredFrom is the uid of the component that owned the objects before. It is set if the component was restored from a backup.
	// +optional
	RestoredFrom types.UID `json:"restoredFrom,omitempty"`

	// Outputs are the values that the component publishes, by their names: see the annotation output. Secret outputs are not among them.
	// +optional
	Outputs map[string]string `json:"outputs,omitempty"`

	// SecretOutputs are the names of the secret outputs. Their values are in the Secret with the name of the component and the
	// suffix -outputs, in the namespace of the component.
	// +optional
	// +listType=atomic
	SecretOutputs []string `json:"secretOutputs,omitempty"`

	// OutputsDigest identifies the values that the Secret of the secret outputs has. It is made with a key that only the operator has.
	// +optional
	OutputsDigest string `json:"outputsDigest,omitempty"`

	// Approval is set while the next revision waits for its approval.
	// +optional
	Approval *PendingApproval `json:"approval,omitempty"`

	// Reconciler is the name of the reconciler that writes this status: the prefix of the labels and
	// annotations of the dependent objects.
	// +optional
	Reconciler string `json:"reconciler,omitempty"`

	// OwnerID is the value of the label owner-id, after the name of the reconciler and a
	// slash, of the dependent objects.
	// +optional
	OwnerID string `json:"ownerID,omitempty"`

	// State is the component's condition in one word.
	// +optional
	State State `json:"state,omitempty"`

	// Progress says how many of the dependent objects are done, such as "12/17": applied and
	// ready or, in deletion, gone.
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

	// ProcessingSince is when the current attempt to become ready started: with
	// the last change of the component or of its manifests. The timeout counts
	// from here. It is empty while the component is ready, is suspended or lacks a right;
	// once the right is granted, the timeout goes on.
	// +optional
	ProcessingSince *metav1.Time `json:"processingSince,omitempty"`

	// ProcessingDigest identifies the state of the component and of its
	// manifests that is, or was last, processed: the digests of the component, of the
	// manifests and of the revision, a generation, and the digest of the generator, separated by slashes.
	// +optional
	ProcessingDigest string `json:"processingDigest,omitempty"`

	// LastHandledReconcileAt is the value of the annotation reconcile-at, or
	// reconcile.fluxcd.io/requestedAt, that the last full reconcile found.
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
