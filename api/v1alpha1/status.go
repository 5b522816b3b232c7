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
	// StateSuspended means that the dependent objects are left as they are, as the spec,
	// an annotation or the management policy says.
	StateSuspended State = "Suspended"
	// StateDeletionPending means that the deletion waits for a retry.
	StateDeletionPending State = "DeletionPending"
	// StateDeleting means that the component is being deleted.
	StateDeleting State = "Deleting"
	// StateError means that something is wrong; the message says what.
	StateError State = "Error"
)

// Source is what the dependent objects of a component are rendered from, for people.
type Source struct {
	// Generator is the kind of the generator, such as "helm" or "kustomize".
	// +optional
	Generator string `json:"generator,omitempty"`
	// Chart, Version and AppVersion are those in the file Chart.yaml of a chart.
	// +optional
	Chart string `json:"chart,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	AppVersion string `json:"appVersion,omitempty"`
}

// RevisionResult is what became of a revision.
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
	Revision int64 `json:"revision"`
	// Result is what became of the revision.
	// +optional
	Result RevisionResult `json:"result,omitempty"`
	// AppliedAt is when the revision was started.
	AppliedAt metav1.Time `json:"appliedAt"`
	// ReadyAt is when all dependent objects were applied and ready for the first time.
	// +optional
	ReadyAt *metav1.Time `json:"readyAt,omitempty"`
	// ChangedBy is the field manager that changed the spec of the component last before the revision
	// started, such as kubectl-edit, or that of the annotation of a rollback.
	// +optional
	ChangedBy string `json:"changedBy,omitempty"`
	// RollbackTo is the earlier revision with the manifests that were applied, if the
	// revision is a rollback.
	// +optional
	RollbackTo int64 `json:"rollbackTo,omitempty"`
	// Digest identifies the manifests that are kept of the revision; it is empty if none are.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Source is what was rendered; it is empty if the generator does not report it.
	// +optional
	Source *Source `json:"source,omitempty"`
}

// Rollback says that a component was rolled back because a revision failed. It lasts until
// the component is changed.
type Rollback struct {
	// From is the revision that failed, and To the one that is applied in its place.
	From int64 `json:"from"`
	To   int64 `json:"to"`
	// Digest identifies what the failed revision is rendered from.
	Digest string `json:"digest"`
	// Message says why the revision failed.
	// +optional
	Message string `json:"message,omitempty"`
}

// PendingApproval is a plan that waits for its approval.
type PendingApproval struct {
	// Revision is what the plan leads to.
	Revision int64 `json:"revision"`
	// Hash of the plan; the annotation approve must have it.
	Hash string `json:"hash"`
	// Summary counts the changes of the plan.
	// +optional
	Summary string `json:"summary,omitempty"`
}

// Types of the conditions that Corbel writes. They follow the conventions of
// kstatus, so "kubectl wait" and the health checks of Flux read them right. Argo CD does not
// read kstatus and needs a health check in Lua.
const (
	// ConditionReady is True when the component does what it should.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work towards the desired state goes on,
	// and absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when no progress is possible until a user
	// changes something, and absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionDrifted is True while dependent objects differ from their manifests
	// and are left as they are, because their drift policy says so. It is absent
	// otherwise.
	ConditionDrifted = "Drifted"
	// ConditionOperatorConflict is True while a second operator of the same name, with
	// a key of its own in another namespace, reconciles the component. It is absent otherwise.
	ConditionOperatorConflict = "OperatorConflict"
)

// Reasons of the conditions.
const (
	ReasonFirstSeen          = "FirstSeen"
	ReasonProcessing         = "Processing"
	ReasonReady              = "Ready"
	ReasonError              = "Error"
	ReasonTimeout            = "Timeout"
	ReasonSuspended          = "Suspended"
	ReasonRetrying           = "Retrying"
	ReasonDeletionRetrying   = "DeletionRetrying"
	ReasonDeletionBlocked    = "DeletionBlocked"
	ReasonDeletionProcessing = "DeletionProcessing"
	// ReasonObjectFailed means that a dependent object says that it failed, such
	// as a Job that has reached its limit.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonForbidden means that the user that objects are read and written as
	// lacks a right. The message names all missing rules, or their number.
	ReasonForbidden = "Forbidden"
	// ReasonInvalid means that the manifests cannot work as they are.
	ReasonInvalid = "Invalid"
	// ReasonSpecInvalid means that the spec or an annotation of the component
	// cannot work as it is.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonOwnerConflict means that an object has another owner.
	ReasonOwnerConflict = "OwnerConflict"
	// ReasonTargetChanged means that the target cluster is another one than
	// the one that the inventory was recorded for.
	ReasonTargetChanged = "TargetChanged"
	// ReasonCRDOutdated means that the custom resource definition of the
	// component lacks status fields that Corbel must keep.
	ReasonCRDOutdated = "CRDOutdated"

	// ReasonRolledBack means that the revision failed, and that the last one that was
	// ready is applied in its place.
	ReasonRolledBack = "RolledBack"

	// ReasonApprovalRequired means that the next revision waits for its approval.
	ReasonApprovalRequired = "ApprovalRequired"

	// ReasonTargetUnreachable means that the target cluster does not answer, or
	// that something else answers in its place.
	ReasonTargetUnreachable = "TargetUnreachable"
	// ReasonTargetAddressDenied means that the operator may not connect to the
	// address of the target cluster.
	ReasonTargetAddressDenied = "TargetAddressDenied"
	// ReasonTargetIsLocal means that a kubeconfig leads to the cluster that the
	// component lives in.
	ReasonTargetIsLocal = "TargetIsLocal"
	// ReasonKubeconfigEmpty means that a kubeconfig is asked for, but what is
	// there is empty.
	ReasonKubeconfigEmpty = "KubeconfigEmpty"
	// ReasonKubeconfigTooLarge means that a kubeconfig has more than 1 MiB.
	ReasonKubeconfigTooLarge = "KubeconfigTooLarge"
	// ReasonKubeconfigInvalid means that a kubeconfig cannot be understood or
	// lacks something.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigInsecure means that a kubeconfig disables the protection of
	// the connection.
	ReasonKubeconfigInsecure = "KubeconfigInsecure"
	// ReasonKubeconfigForbiddenField means that a kubeconfig has a field that
	// would make the operator run programs, open files, use a proxy or
	// impersonate another user.
	ReasonKubeconfigForbiddenField = "KubeconfigForbiddenField"
)
