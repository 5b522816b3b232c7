// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

// Suffixes of labels and annotations; the prefix is the name of the reconciler and a slash.
const (
	// LabelOwnerID identifies the owner of a dependent object by a hash. The status of the
	// component has the value as ownerID, so that a label selector finds all its objects.
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
	// AnnotationAutomatic proves that an operator has created the namespace, because objects live in it. The
	// last component that uses the namespace deletes it, if it is empty by then.
	//
	// On: namespaces that no manifest brings
	// Set by: the operator, when it creates the namespace
	// Format: a hash of the name of the namespace, made with the digest key of the operator
	// Example: shop.example.com/automatic: 8Yb0vO0pJ6J3tB2wq0mXnA
	AnnotationAutomatic = "automatic"
	// LabelShared marks a CustomResourceDefinition that all components of the reconciler share,
	// because it comes from the folder crds of their chart. It belongs to no component, and stays
	// when they are deleted. An annotation of the same name has the content and the version of the
	// chart that it was made of: an operator with a lower version does not change it.
	//
	// On: definitions of shared types; on a manifest it is refused
	// Set by: the operator, with each write
	// Format: the label is true; the annotation is a hash, and the version after a space
	// Example: shop.example.com/shared: "true"
	LabelShared = "shared"
	// AnnotationOperatorNamespace names the namespace of the operator that an
	// object belongs to, where several operators of package lifecycle share the objects of one kind. A change
	// of it hands the object over.
	//
	// On: the object of a reconciler of package lifecycle that has the option OperatorNamespace
	// Set by: the first operator that reconciles the object
	// Format: the name of a namespace
	// Example: shop.example.com/operator-namespace: operators-a
	AnnotationOperatorNamespace = "operator-namespace"
	// AnnotationSuspend suspends a component as its spec may do: for good, or until a time at
	// which the suspension ends by itself. The dependent objects are left as they are. The deletion of the
	// component goes on regardless.
	//
	// On: the component
	// Level: daily
	// Format: "true", "false", or a time in the form of RFC 3339
	// Default: "false"
	// Example: shop.example.com/suspend: "2026-12-01T08:00:00Z"
	// Also: the fields suspend and suspendUntil of SuspensionSpec; of two suspensions the later end counts
	AnnotationSuspend = "suspend"
	// AnnotationSuspendReason is why the component is suspended, for other users. It stands in the
	// message of condition Ready.
	//
	// On: the component
	// Level: daily
	// Format: text
	// Default: none
	// Example: shop.example.com/suspend-reason: incident 7
	// Also: the field suspendReason of SuspensionSpec
	AnnotationSuspendReason = "suspend-reason"
	// AnnotationReconcileAt asks for a full reconcile whenever its value changes. The status has the value as
	// lastHandledReconcileAt when that is done. The annotation reconcile.fluxcd.io/requestedAt
	// means the same; of two the later time counts.
	//
	// On: the component
	// Level: daily
	// Format: text, by convention the current time in the form of RFC 3339; at most 128 bytes of it are recorded
	// Default: none
	// Example: shop.example.com/reconcile-at: "2026-05-04T10:22:31Z"
	AnnotationReconcileAt = "reconcile-at"
	// AnnotationRollbackTo is the number of an earlier revision of the component. Its manifests are
	// applied in place of the manifests of the spec, until the annotation is removed. Which
	// revisions there are is in status.history.
	//
	// On: the component
	// Level: daily
	// Format: the number of a revision with manifests in the history
	// Default: none
	// Example: shop.example.com/rollback-to: "3"
	// Also: the field rollbackOnFailure of RollbackSpec and the option RollbackOnFailure go back without it
	AnnotationRollbackTo = "rollback-to"
	// AnnotationRequireApproval lets each new revision of the component wait until
	// its plan is approved. The annotation approve approves it.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: the option RequireApproval, else "false"
	// Example: shop.example.com/require-approval: "true"
	// Also: the option RequireApproval
	AnnotationRequireApproval = "require-approval"
	// AnnotationApprove is the hash of a plan that waits for its approval, as the status has it in
	// approval.hash. It approves this one plan.
	//
	// On: the component
	// Level: daily
	// Format: the hash of a plan
	// Default: none
	// Example: shop.example.com/approve: 1f2e3d4c5b6a79880a1b
	AnnotationApprove = "approve"
	// AnnotationRollout decides how the component takes part when its operator comes with another
	// chart or generator. With pin it keeps the revision that it has until its spec is changed, for
	// which the operator needs RevisionHistoryLimit and a generator that reports a digest. The
	// other values matter to the option Rollout: with promote the component is updated now,
	// whatever the limit; with ignore it does not count if it has failed. The command corbel
	// rollout sets it. Remove it when it is of no use any more: it counts for the next roll-out,
	// too.
	//
	// On: the component
	// Level: special
	// Format: one of pin, promote, ignore
	// Default: none; the component is updated when it is its turn
	// Example: shop.example.com/rollout: pin
	// Also: the option Rollout
	AnnotationRollout = "rollout"
	// AnnotationAdoptHelmRelease names the revision of a Helm release that the component takes over
	// when it is installed. The revision must be deployed and the last one of its release, and the
	// namespace and the name of the release must equal those of the deployment, in the namespace of
	// the component. Its objects are adopted also under the adoption policy if-unowned, unless
	// their own annotation adoption-policy is never or ignore; hooks do not run; random values and
	// dates are kept as they are live. It counts until all objects are ready for the first time,
	// and has no effect afterwards; remove it then from manifests that a component may be created
	// from again. The command corbel adopt sets it. The operator must have the option
	// AdoptHelmReleases.
	//
	// On: the component
	// Level: migration
	// Format: namespace, name and revision of the release, separated by slashes
	// Default: none
	// Example: shop.example.com/adopt-helm-release: market/corner/7
	AnnotationAdoptHelmRelease = "adopt-helm-release"
	// AnnotationPreview asks the operator for its plan for the component, which is not changed by
	// it. The command corbel plan sets it, and shows the answer, which the operator writes into a
	// Secret beside the component. After ten minutes the operator deletes the Secret and removes
	// the annotation.
	//
	// On: the component
	// Level: special
	// Format: a nonce; what is asked follows it: edited, delete, manifests, or diff with two revisions
	// Default: none
	// Example: shop.example.com/preview: 1779963751-mfrggzdfmztwq2lk delete
	// Also: the option DisablePreviews
	AnnotationPreview = "preview"
	// AnnotationConfirmDeletion confirms that the component is to be deleted. It counts only if the chart of the
	// operator was installed with deletionProtection; then the API server refuses the deletion
	// without it. Corbel itself does not read it.
	//
	// On: the component, or the CustomResourceDefinition of the components
	// Level: special
	// Format: the name of the object
	// Default: nothing is confirmed
	// Example: shop.example.com/confirm-deletion: main
	AnnotationConfirmDeletion = "confirm-deletion"
	// AnnotationAllowEmpty lets a component that renders nothing
	// remove all its dependents. Otherwise that counts as a mistake.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: "false"
	// Example: shop.example.com/allow-empty: "true"
	AnnotationAllowEmpty = "allow-empty"
	// AnnotationSkipDeleteHooks lets the deletion of the component go on without the
	// objects that are to run before and after it. Set it if they cannot be rendered or fail.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: "false"
	// Example: shop.example.com/skip-delete-hooks: "true"
	AnnotationSkipDeleteHooks = "skip-delete-hooks"
	// AnnotationAdoptOperator lets an operator take over a component of another operator of the same type, for an operator that was
	// renamed. The operator removes the finalizer of the other one, and gives the dependents its own label and annotation.
	//
	// On: the component
	// Level: migration
	// Format: the name of a reconciler
	// Default: the option AdoptOperator
	// Example: shop.example.com/adopt-operator: store.example.com
	AnnotationAdoptOperator = "adopt-operator"
	// AnnotationAbandon drops the inventory of a component that is being deleted, and orphans its
	// dependents as they are. Set it if the deletion cannot succeed, for example because the target
	// cluster does not exist any more. The event Abandoned names the objects that are left. A
	// dependent that has an ownerReference to the component, set by another client, is deleted by
	// the garbage collector.
	//
	// On: the component
	// Level: special
	// Format: "true" or "false"
	// Default: "false"
	// Example: shop.example.com/abandon: "true"
	AnnotationAbandon = "abandon"
)
