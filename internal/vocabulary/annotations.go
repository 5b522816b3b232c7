// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

// Suffixes of labels and annotations; the prefix is the name of the reconciler and a slash.
const (
	// LabelOwnerID identifies the owner of a dependent object by a hash, which the status of the component has as
	// ownerID.
	//
	// On: dependent objects
	// Set by: the operator, with each write
	// Format: 32 characters, a to z and 2 to 7
	// Example: shop.example.com/owner-id: b7l5rv2kqmbhkl5h3xsvjvzgzs2ud4tc
	LabelOwnerID = "owner-id"
	// AnnotationOwner names the owner of a dependent object in clear text.
	//
	// On: dependent objects
	// Set by: the operator, with each write
	// Format: group, kind, namespace, name and uid of the owner, separated by slashes
	// Example: shop.example.com/owner: shop.example.com/Shop/shop/main/0b1f8a52-6a39-4a41-9a0f-6a6f0e3f3c55
	AnnotationOwner = "owner"
	// AnnotationAutomatic proves that an operator has created the namespace. The last component in the namespace
	// deletes it, if it is empty.
	//
	// On: namespaces that no manifest brings
	// Set by: the operator, when it creates the namespace
	// Format: a hash of the name of the namespace, made with the digest key of the operator
	// Example: shop.example.com/automatic: 8Yb0vO0pJ6J3tB2wq0mXnA
	AnnotationAutomatic = "automatic"
	// LabelShared marks a CustomResourceDefinition from the folder crds of a chart, which all components share. It
	// stays when they are deleted. An annotation of the same name has the content and the version of the chart; an
	// operator with a lower version does not change it.
	//
	// On: definitions of shared types; on a manifest it is refused
	// Set by: the operator, with each write
	// Format: the label is true; the annotation is a hash, and the version after a space
	// Example: shop.example.com/shared: "true"
	LabelShared = "shared"
	// AnnotationOperatorNamespace names the namespace of the operator that an object belongs to. A change hands
	// the object over.
	//
	// On: the object of a reconciler of package lifecycle that has the option OperatorNamespace
	// Set by: the first operator that reconciles the object
	// Format: the name of a namespace
	// Example: shop.example.com/operator-namespace: operators-a
	AnnotationOperatorNamespace = "operator-namespace"
	// AnnotationSuspend suspends a component, for good or until a time. A deletion goes on regardless.
	//
	// On: the component
	// Level: daily
	// Format: "true", "false", or a time in the form of RFC 3339
	// Default: "false"
	// Example: shop.example.com/suspend: "2026-12-01T08:00:00Z"
	// Also: the fields suspend and suspendUntil of SuspensionSpec; of two suspensions the later end counts
	AnnotationSuspend = "suspend"
	// AnnotationSuspendReason is why the component is suspended, for the message of Ready.
	//
	// On: the component
	// Level: daily
	// Format: text
	// Default: none
	// Example: shop.example.com/suspend-reason: incident 7
	// Also: the field suspendReason of SuspensionSpec
	AnnotationSuspendReason = "suspend-reason"
	// AnnotationReconcileAt asks for a full reconcile whenever its value changes. Afterwards the status has the
	// value as lastHandledReconcileAt. Of this annotation and reconcile.fluxcd.io/requestedAt the later time
	// counts.
	//
	// On: the component
	// Level: daily
	// Format: text, by convention the current time in the form of RFC 3339; at most 128 bytes of it are recorded
	// Default: none
	// Example: shop.example.com/reconcile-at: "2026-05-04T10:22:31Z"
	AnnotationReconcileAt = "reconcile-at"
	// AnnotationRollbackTo is the number of an earlier revision in status.history. Its manifests are applied until
	// the annotation is removed.
	//
	// On: the component
	// Level: daily
	// Format: the number of a revision with manifests in the history
	// Default: none
	// Example: shop.example.com/rollback-to: "3"
	// Also: the field rollbackOnFailure of RollbackSpec; the option RollbackOnFailure
	AnnotationRollbackTo = "rollback-to"
	// AnnotationRequireApproval lets each new revision of the component wait until the annotation approve approves
	// its plan.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: the option RequireApproval, else "false"
	// Example: shop.example.com/require-approval: "true"
	AnnotationRequireApproval = "require-approval"
	// AnnotationApprove is the hash of the one plan that it approves, as in status.approval.hash.
	//
	// On: the component
	// Level: daily
	// Format: the hash of a plan
	// Default: none
	// Example: shop.example.com/approve: 1f2e3d4c5b6a79880a1b
	AnnotationApprove = "approve"
	// AnnotationRollout decides how the component takes part in this and later roll-outs of its operator. pin
	// keeps its revision until its spec changes. promote updates the component now. ignore does not count its
	// failure. The command corbel rollout sets it.
	//
	// On: the component
	// Level: special
	// Format: one of pin, promote, ignore
	// Default: none
	// Example: shop.example.com/rollout: pin
	// Also: the option Rollout
	AnnotationRollout = "rollout"
	// AnnotationAdoptHelmRelease names the last, deployed revision of a Helm release that a new component takes
	// over. The release must have the name and the namespace of the deployment. The component
	// runs no hooks, and keeps live random values and dates. The annotation has no effect once all objects were
	// ready. The command corbel adopt sets it. The operator needs the option AdoptHelmReleases.
	//
	// On: the component
	// Level: migration
	// Format: namespace, name and revision of the release, separated by slashes
	// Default: none
	// Example: shop.example.com/adopt-helm-release: market/corner/7
	AnnotationAdoptHelmRelease = "adopt-helm-release"
	// AnnotationPreview asks the operator for its plan, which the operator writes into a Secret beside the
	// component. The command corbel plan sets it.
	//
	// On: the component
	// Level: special
	// Format: a nonce, and after it what is asked: edited, delete, manifests, or diff with two revisions
	// Default: none
	// Example: shop.example.com/preview: 1779963751-mfrggzdfmztwq2lk delete
	// Also: the option DisablePreviews
	AnnotationPreview = "preview"
	// AnnotationConfirmDeletion confirms a deletion. If the chart of the operator was installed with
	// deletionProtection, the API server refuses a deletion without it.
	//
	// On: the component, or the CustomResourceDefinition of the components
	// Level: special
	// Format: the name of the object
	// Default: none
	// Example: shop.example.com/confirm-deletion: main
	AnnotationConfirmDeletion = "confirm-deletion"
	// AnnotationAllowEmpty lets a component that renders nothing remove all its dependents. Otherwise rendering
	// nothing is a mistake.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: "false"
	// Example: shop.example.com/allow-empty: "true"
	AnnotationAllowEmpty = "allow-empty"
	// AnnotationSkipDeleteHooks lets the deletion go on without the objects that run before and after it, if they
	// cannot be rendered or fail.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: "false"
	// Example: shop.example.com/skip-delete-hooks: "true"
	AnnotationSkipDeleteHooks = "skip-delete-hooks"
	// AnnotationAdoptOperator lets a renamed operator take over a component of its former name. It removes the
	// former finalizer, and gives the dependents its own label and annotation.
	//
	// On: the component
	// Level: migration
	// Format: the name of a reconciler
	// Default: the option AdoptOperator
	// Example: shop.example.com/adopt-operator: store.example.com
	AnnotationAdoptOperator = "adopt-operator"
	// AnnotationAbandon orphans the dependents of a component in deletion, if the deletion cannot succeed, for
	// example without its target cluster. The event Abandoned names them.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: "false"
	// Example: shop.example.com/abandon: "true"
	AnnotationAbandon = "abandon"
)
