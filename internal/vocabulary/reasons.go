// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

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

// RepairedMeanwhile ends the message of condition Ready while the objects that were applied last are repaired, because no new set can be
// applied.
const RepairedMeanwhile = "; until then, what was applied last is repaired"
