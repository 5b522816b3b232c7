// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// State is the summary of a component's condition in one word.
//
// +kubebuilder:validation:Enum=Ready;Pending;Processing;Suspended;DeletionPending;Deleting;Error
type State string

const (
	// StateReady means that every dependent object is applied and ready.
	StateReady State = "Ready"
	// StatePending means that the component is new, or waits for a retry.
	StatePending State = "Pending"
	// StateProcessing means that dependent objects are being applied or are
	// not ready yet.
	StateProcessing State = "Processing"
	// StateSuspended means that the spec, an annotation or the management policy demands to leave
	// the dependent objects as they are.
	StateSuspended State = "Suspended"
	// StateDeletionPending means that the deletion waits for a retry.
	StateDeletionPending State = "DeletionPending"
	// StateDeleting means that the component is being deleted. Reason and message describe an
	// error.
	StateDeleting State = "Deleting"
	// StateError means an error of a component that is not being deleted; the message describes it.
	StateError State = "Error"
)

// Source describes the source of the dependent objects of a component, for people.
type Source struct {
	// Generator is the kind of the generator, such as "helm" or "kustomize".
	// +optional
	Generator string `json:"generator,omitempty"`
	// Chart is the name in the file Chart.yaml of a chart.
	// +optional
	Chart string `json:"chart,omitempty"`
	// Version is the version in the file Chart.yaml of a chart.
	// +optional
	Version string `json:"version,omitempty"`
	// AppVersion is the appVersion in the file Chart.yaml of a chart.
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
}

// RevisionResult is the result of a revision.
//
// +kubebuilder:validation:Enum=Processing;Ready;Failed;Superseded
type RevisionResult string

const (
	// RevisionProcessing means that the revision is being applied.
	RevisionProcessing RevisionResult = "Processing"
	// RevisionReady means that all dependent objects were applied and ready.
	RevisionReady RevisionResult = "Ready"
	// RevisionFailed means that a dependent object failed, or that not all were ready
	// within the timeout.
	RevisionFailed RevisionResult = "Failed"
	// RevisionSuperseded means that another revision started before this one was ready.
	RevisionSuperseded RevisionResult = "Superseded"
)

// RevisionStatus is a revision in the history of a component.
type RevisionStatus struct {
	// Revision is the number of the revision.
	Revision int64 `json:"revision"`
	// Result is the result of the revision.
	// +optional
	Result RevisionResult `json:"result,omitempty"`
	// AppliedAt is when the revision was started.
	AppliedAt metav1.Time `json:"appliedAt"`
	// ReadyAt is when all dependent objects were applied and ready for the first time.
	// +optional
	ReadyAt *metav1.Time `json:"readyAt,omitempty"`
	// ChangedBy is the field manager that last changed the spec before the revision, such as kubectl-edit, or that
	// set the annotation of a rollback.
	// +optional
	ChangedBy string `json:"changedBy,omitempty"`
	// RollbackTo is the earlier revision that was applied, if the revision is a rollback.
	// +optional
	RollbackTo int64 `json:"rollbackTo,omitempty"`
	// Digest identifies the kept manifests of the revision; it is empty if there are none.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Source is the source of the manifests; it is empty if the generator does not report it.
	// +optional
	Source *Source `json:"source,omitempty"`
	// Generator identifies the generator of the revision, such as one version of a chart; it is empty if the
	// generator reports no digest.
	// +optional
	Generator string `json:"generator,omitempty"`
}

// Rollback records a rollback after a failed revision. It lasts until the component is changed.
type Rollback struct {
	// From is the revision that failed.
	From int64 `json:"from"`
	// To is the revision that is applied in its place.
	To int64 `json:"to"`
	// Digest identifies the source of the failed revision.
	Digest string `json:"digest"`
	// Message says why the revision failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// AdoptedRelease is a Helm release that a component has taken over.
type AdoptedRelease struct {
	// Namespace is the namespace of the release.
	Namespace string `json:"namespace"`
	// Name is the name of the release.
	Name string `json:"name"`
	// Revision is the revision of the release that was taken over. The component counts its revisions from it.
	Revision int64 `json:"revision"`
}

// PendingApproval is a plan that waits for its approval.
type PendingApproval struct {
	// Revision is the revision after the plan.
	Revision int64 `json:"revision"`
	// Hash identifies the plan; the annotation approve must have it.
	Hash string `json:"hash"`
	// Summary counts the changes of the plan.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// Types of the conditions that Corbel writes. They follow the conventions of
// kstatus, so "kubectl wait" and the health checks of Flux read them right. Argo CD does not
// read kstatus and needs a health check in Lua.
const (
	// ConditionReady is True when the component does its work.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work towards the desired state goes on,
	// and absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when no progress is possible until a user
	// changes something, and absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionDrifted is True while dependent objects differ from their manifests and are left as
	// they are, because of their drift policy or because a webhook changes each write of them. It
	// is absent otherwise.
	ConditionDrifted = "Drifted"
	// ConditionRolloutStopped is True while the component has failed with a new version of the
	// operator, and other components wait for it. It is absent otherwise.
	ConditionRolloutStopped = "RolloutStopped"
)
