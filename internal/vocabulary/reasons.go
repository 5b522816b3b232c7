// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

// Reasons of the conditions. The state, and the conditions beside Ready, follow from the reason.
const (
	// ReasonFirstSeen means that the operator has set its finalizer on a new component.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: Pending
	// What to do: nothing.
	ReasonFirstSeen = "FirstSeen"
	// ReasonProcessing means that dependent objects are being applied or are not ready yet.
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
	// ReasonError means that a request, a hook or the generator failed. The operator tries again with increasing
	// delays.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: correct the cause that the message names, unless the error ends by itself.
	ReasonError = "Error"
	// ReasonTimeout means that dependent objects were not ready within the timeout. The operator goes on, and the
	// component becomes Ready with them.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: look at the objects that the message names and at their events. Raise the timeout if they only
	// need longer.
	ReasonTimeout = "Timeout"
	// ReasonSuspended means that the spec, the annotation suspend or the management policy suspends the component.
	//
	// Conditions: Ready Unknown
	// State: Suspended
	// What to do: nothing, or end the suspension. The message has its end and its reason.
	ReasonSuspended = "Suspended"
	// ReasonRetrying means that the generator, a hook or a server asked for another attempt later.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: Pending
	// What to do: wait. The message has the reason.
	ReasonRetrying = "Retrying"
	// ReasonDeletionRetrying means that the deletion waits for another attempt.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: DeletionPending
	// What to do: wait. If hooks of the deletion cannot be rendered, the annotation skip-delete-hooks leaves them
	// out.
	ReasonDeletionRetrying = "DeletionRetrying"
	// ReasonDeletionBlocked means that the deletion would remove instances or objects of other owners, or the
	// operator has no access to the target cluster.
	//
	// Conditions: Ready False, Reconciling True
	// State: Deleting
	// What to do: remove the objects that the message names, or restore the access. If the target cluster does not
	// exist any more, set the annotation abandon.
	ReasonDeletionBlocked = "DeletionBlocked"
	// ReasonDeletionProcessing means that dependent objects are being removed. The message names the first ones
	// that still exist.
	//
	// Conditions: Ready False, Reconciling True
	// State: Deleting
	// What to do: wait. If it lasts, look for finalizers on these objects.
	ReasonDeletionProcessing = "DeletionProcessing"
	// ReasonObjectFailed means that a dependent object reports a failure, such as a Job at its limit. The
	// component becomes Ready with the object.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: look at the object. Correct the spec or the manifests; a changed manifest runs a Job again.
	ReasonObjectFailed = "ObjectFailed"
	// ReasonForbidden means that the user of the operator for this component lacks a right. The message names the
	// missing rules, or their number.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: grant the rules in the message or in the log of the operator.
	ReasonForbidden = "Forbidden"
	// ReasonInvalid means that the manifests cannot work, or the inventory cannot be used. The operator wrote
	// nothing of them. The message lists all mistakes.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the manifests, the chart or the spec.
	ReasonInvalid = "Invalid"
	// ReasonBreakingChange means that the manifests change a CustomResourceDefinition so that objects or clients
	// of its type would break. The operator wrote nothing of the definition, and later objects wait.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: change the manifests so that nothing breaks, for example by a new version of the type. If the
	// change is intended, set the annotation allow-breaking-changes: "true" on the manifest of the definition.
	ReasonBreakingChange = "BreakingChange"
	// ReasonSpecInvalid means that the spec or an annotation of the component is wrong. The message lists all
	// mistakes.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the fields and annotations.
	ReasonSpecInvalid = "SpecInvalid"
	// ReasonOwnerConflict means that an object exists and belongs to another owner.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: rename the object, or remove it from the other owner. The annotation adoption-policy: always on
	// the manifest takes it over.
	ReasonOwnerConflict = "OwnerConflict"
	// ReasonTargetChanged means that the kubeconfig leads to another cluster than the inventory. The operator read
	// and wrote nothing.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: point the kubeconfig back to the former cluster. To move the dependents, delete the component
	// and create it again.
	ReasonTargetChanged = "TargetChanged"
	// ReasonCRDOutdated means that the CustomResourceDefinition of the component lacks status fields.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: apply the definition of this version of the operator.
	ReasonCRDOutdated = "CRDOutdated"
	// ReasonRolledBack means that a revision failed, and the operator applied the last ready revision in its
	// place.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the cause and change the spec or the operator. To try the same revision again, set the
	// annotation rollback-to to the number in status.rollback.to, and remove it.
	ReasonRolledBack = "RolledBack"
	// ReasonApprovalRequired means that the next revision waits for its approval. The message has a summary of the
	// plan, and its hash.
	//
	// Conditions: Ready Unknown, Reconciling True
	// State: Pending
	// What to do: read the plan, and set the annotation approve to its hash; or change the spec back.
	ReasonApprovalRequired = "ApprovalRequired"
	// ReasonTargetUnreachable means that the target cluster does not answer, or another server answers.
	//
	// Conditions: Ready False, Reconciling True
	// State: Error
	// What to do: check the server in the kubeconfig, the network and the certificates.
	ReasonTargetUnreachable = "TargetUnreachable"
	// ReasonTargetAddressDenied means that the operator may not connect to the address of the target cluster.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: use an allowed address, or let the author of the operator allow it by the option
	// TargetDialPolicy.
	ReasonTargetAddressDenied = "TargetAddressDenied"
	// ReasonTargetIsLocal means that a kubeconfig leads, or may lead, to the cluster of the component itself.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: replace the kubeconfig by a service account, or grant its user the right to get the namespace
	// kube-system.
	ReasonTargetIsLocal = "TargetIsLocal"
	// ReasonKubeconfigEmpty means that the kubeconfig of the component is empty.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: write the kubeconfig into the key of the Secret that the spec names.
	ReasonKubeconfigEmpty = "KubeconfigEmpty"
	// ReasonKubeconfigTooLarge means that a kubeconfig has more than 1 MiB.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: reduce it to one cluster, user and context.
	ReasonKubeconfigTooLarge = "KubeconfigTooLarge"
	// ReasonKubeconfigInvalid means that a kubeconfig is malformed or incomplete.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: correct the fields that the message names.
	ReasonKubeconfigInvalid = "KubeconfigInvalid"
	// ReasonKubeconfigInsecure means that a kubeconfig disables the protection of the connection.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: use https, and a certificate authority in place of insecure-skip-tls-verify.
	ReasonKubeconfigInsecure = "KubeconfigInsecure"
	// ReasonKubeconfigForbiddenField means that a kubeconfig has a field that would make the operator run
	// programs, open files, use a proxy or impersonate another user.
	//
	// Conditions: Ready False, Stalled True
	// State: Error
	// What to do: replace the field by data in the kubeconfig, such as a token or a certificate.
	ReasonKubeconfigForbiddenField = "KubeconfigForbiddenField"
)

// RepairedMeanwhile ends the message of condition Ready while the objects that were applied last are repaired, because no new set can be
// applied.
const RepairedMeanwhile = "; until then, what was applied last is repaired"
