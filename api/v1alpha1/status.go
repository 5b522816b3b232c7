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
	// ChangedBy is the field manager that changed the spec of the component last before the
	// revision started, such as kubectl-edit, or the field manager of the annotation of a rollback.
	// +optional
	ChangedBy string `json:"changedBy,omitempty"`
	// RollbackTo is the earlier revision with the manifests that were applied, if the
	// revision is a rollback.
	// +optional
	RollbackTo int64 `json:"rollbackTo,omitempty"`
	// Digest identifies the manifests that are kept of the revision; it is empty if none are.
	// +optional
	Digest string `json:"digest,omitempty"`
	// Source is the source of the manifests; it is empty if the generator does not report it.
	// +optional
	Source *Source `json:"source,omitempty"`
	// Generator identifies the generator that the revision was rendered with, such as one version of a chart; it is
	// empty if the generator reports no digest.
	// +optional
	Generator string `json:"generator,omitempty"`
}

// Rollback records that a component was rolled back because a revision failed. It lasts until the
// component is changed.
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

// Reasons of the conditions. The state, and the conditions beside Ready, follow from the reason.
const (
	// ReasonFirstSeen means that the component was seen for the first time: it has got its finalizer, and
	// nothing else was done.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: Pending
	// What to do: nothing; the next reconcile follows at once.
	ReasonFirstSeen = "FirstSeen"
	// ReasonProcessing means that dependent objects are being applied or are not ready yet. The message names
	// the first of them, or the revision that has just started.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: Processing
	// What to do: wait. If it lasts, look at the objects that the message names.
	ReasonProcessing = "Processing"
	// ReasonReady means that all dependent objects are applied and ready.
	//
	// Conditions: Ready True
	// State: Ready
	// What to do: nothing.
	ReasonReady = "Ready"
	// ReasonError means that something failed that may succeed when it is tried again, such as a request, a
	// hook or the generator. It is retried with increasing delays.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: read the message. If the error does not end by itself, correct its cause; the next attempt
	// follows by itself.
	ReasonError = "Error"
	// ReasonTimeout means that dependent objects were not ready within the timeout. Reconciling goes on, and
	// the component is Ready as soon as they are.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: look at the objects that the message names and at their events. Raise the timeout if they
	// only need longer.
	ReasonTimeout = "Timeout"
	// ReasonSuspended means that the spec, the annotation suspend or the management policy demands
	// to leave the dependent objects as they are.
	//
	// Conditions: Ready Unknown
	// State: Suspended
	// What to do: nothing, or end the suspension; the message says until when and why it lasts.
	ReasonSuspended = "Suspended"
	// ReasonRetrying means that the generator, a hook or a server asked for another attempt later.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: Pending
	// What to do: wait. The message names the reason of the wait.
	ReasonRetrying = "Retrying"
	// ReasonDeletionRetrying means that the deletion waits for another attempt, like Retrying.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: DeletionPending
	// What to do: wait. The message names the reason of the wait. If hooks of the deletion cannot
	// be rendered, the annotation skip-delete-hooks goes on without them.
	ReasonDeletionRetrying = "DeletionRetrying"
	// ReasonDeletionBlocked means that the deletion of the component does not start, or does not go
	// on, because instances or objects of other owners would be lost, or because the access to the
	// target cluster is missing.
	//
	// Conditions: Ready False, Reconciling True
	// State: Deleting
	// What to do: remove the objects that the message names, or restore the missing access. The
	// annotation abandon orphans the dependents as they are, if the target cluster does not exist
	// any more.
	ReasonDeletionBlocked = "DeletionBlocked"
	// ReasonDeletionProcessing means that dependent objects are being removed. The message names the first
	// that still exist.
	//
	// Conditions: Ready False, Reconciling True
	// State: Deleting
	// What to do: wait. If it lasts, look for finalizers on the objects that the message names.
	ReasonDeletionProcessing = "DeletionProcessing"
	// ReasonObjectFailed means that a dependent object reports a failure, such as a Job that has
	// reached its limit. The component is Ready as soon as the object is.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: look at the object that the message names. Correct the spec or the manifests; for an object
	// that runs once, a change of its manifest runs it again.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonForbidden means that the user that objects are read and written as lacks a right. The message
	// names all missing rules, or their number.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: grant the rules that the message names; the log of the operator has all of them. Reconciling
	// goes on by itself.
	ReasonForbidden = "Forbidden"
	// ReasonInvalid means that the manifests cannot work as they are, or that the inventory cannot be used.
	// Nothing of them was written. The message lists all mistakes.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the manifests, the chart or the spec, as the message says.
	ReasonInvalid = "Invalid"
	// ReasonBreakingChange means that the manifests change a CustomResourceDefinition that exists
	// so that objects or clients of its type would break. Nothing of the definition was written,
	// and the objects after it wait. The message lists the changes.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: change the chart or the manifest so that nothing breaks, for example by a new version of the
	// type. If the change is meant, set the annotation allow-breaking-changes: "true" on the manifest of the
	// definition.
	ReasonBreakingChange = "BreakingChange"
	// ReasonSpecInvalid means that the spec or an annotation of the component cannot work as it is. The
	// message lists all mistakes.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the fields and annotations that the message names.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonOwnerConflict means that an object exists already and belongs to another owner, which the message
	// names.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: remove the object from its other owner, or rename it. The annotation adoption-policy: always
	// on the manifest takes it over from an owner that does not need it.
	ReasonOwnerConflict = "OwnerConflict"
	// ReasonTargetChanged means that the inventory was recorded for another target cluster. Nothing
	// was read or written.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: point the kubeconfig back to the cluster where the dependents live. To move them, delete the
	// component there and create it again with the other kubeconfig.
	ReasonTargetChanged = "TargetChanged"
	// ReasonCRDOutdated means that the custom resource definition of the component lacks status fields that
	// Corbel must keep.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: apply the custom resource definition of this version of the operator.
	ReasonCRDOutdated = "CRDOutdated"
	// ReasonRolledBack means that the revision failed, and that the last ready revision is applied
	// in its place. The message says why it failed.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the cause and change the spec or the operator; the change is tried as a new
	// revision. To try the same again, set the annotation rollback-to to the number in status.rollback.to, and
	// remove it.
	ReasonRolledBack = "RolledBack"
	// ReasonApprovalRequired means that the next revision waits for its approval. The message has a summary of
	// the plan, and its hash.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: Pending
	// What to do: read the plan, and set the annotation approve to its hash; or change the spec back.
	ReasonApprovalRequired = "ApprovalRequired"
	// ReasonTargetUnreachable means that the target cluster does not answer, or that something else answers in
	// its place.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: check the server in the kubeconfig, the network and the certificates; the message has the
	// answer. The cluster is tried again by itself.
	ReasonTargetUnreachable = "TargetUnreachable"
	// ReasonTargetAddressDenied means that the operator may not connect to the address of the target cluster.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: use an address that the operator allows, or ask its author to allow it with the option
	// TargetDialPolicy.
	ReasonTargetAddressDenied = "TargetAddressDenied"
	// ReasonTargetIsLocal means that a kubeconfig leads, or may lead, to the cluster that the component lives
	// in.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: remove the kubeconfig, and set a service account in its place; or grant the user of the
	// kubeconfig the right to get the namespace kube-system, as the message says.
	ReasonTargetIsLocal = "TargetIsLocal"
	// ReasonKubeconfigEmpty means that a kubeconfig is asked for, but its content is empty.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: write the kubeconfig into the key of the Secret that the spec names.
	ReasonKubeconfigEmpty = "KubeconfigEmpty"
	// ReasonKubeconfigTooLarge means that a kubeconfig has more than 1 MiB.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: reduce the kubeconfig to the one cluster, user and context that are used.
	ReasonKubeconfigTooLarge = "KubeconfigTooLarge"
	// ReasonKubeconfigInvalid means that a kubeconfig cannot be understood or lacks something.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the fields that the message names.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigInsecure means that a kubeconfig disables the protection of the connection.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: use https, and the certificate authority of the cluster in place of
	// insecure-skip-tls-verify.
	ReasonKubeconfigInsecure = "KubeconfigInsecure"
	// ReasonKubeconfigForbiddenField means that a kubeconfig has a field that would make the operator run
	// programs, open files, use a proxy or impersonate another user.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: replace the field that the message names by data in the kubeconfig itself, such as a token
	// or a certificate.
	ReasonKubeconfigForbiddenField = "KubeconfigForbiddenField"
)
