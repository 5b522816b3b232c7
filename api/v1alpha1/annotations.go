// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Suffixes of labels and annotations; the prefix is the name of the reconciler
// and a slash, as in "shop.example.com/apply-order".
const (
	// LabelOwnerID holds a hash of the owner on every dependent object.
	LabelOwnerID = "owner-id"
	// AnnotationOwner holds the owner in clear text on every dependent object.
	AnnotationOwner = "owner"

	AnnotationAdoptionPolicy  = "adoption-policy"
	AnnotationReconcilePolicy = "reconcile-policy"
	AnnotationUpdatePolicy    = "update-policy"
	// AnnotationRecreatePropagation says what happens to the dependents of an
	// object that is recreated, such as the pods of a StatefulSet: "background"
	// deletes them, "orphan" hands them over to the new object.
	AnnotationRecreatePropagation = "recreate-propagation"
	AnnotationDeletePolicy        = "delete-policy"
	// AnnotationDriftPolicy may be on the component, too, for all its dependents.
	AnnotationDriftPolicy     = "drift-policy"
	AnnotationApplyOrder      = "apply-order"
	AnnotationDeleteOrder     = "delete-order"
	AnnotationPurgeOrder      = "purge-order"
	AnnotationReapplyInterval = "reapply-interval"
	AnnotationStatusHint      = "status-hint"
	AnnotationReadyWhen       = "ready-when"
	AnnotationIgnoreFields    = "ignore-fields"
	AnnotationDependsOn       = "depends-on"
	AnnotationRunOn           = "run-on"
	// AnnotationRevision is any text. An object that has it counts as changed when
	// the text changes, and not when something else of its manifest does, unless the
	// object has failed. The hooks of a chart have the revision of the component.
	AnnotationRevision = "revision"

	// AnnotationManagementPolicy is on the component, like those below, or on
	// its namespace.
	AnnotationManagementPolicy = "management-policy"
	// AnnotationOperatorNamespace names the namespace of the operator that an
	// object belongs to, where several operators share the objects of one kind.
	AnnotationOperatorNamespace = "operator-namespace"
	// AnnotationSuspend suspends a component as its spec may do: "true", or the time at
	// which the suspension ends by itself, in the form of RFC 3339. The deletion of the
	// component goes on regardless.
	AnnotationSuspend = "suspend"
	// AnnotationSuspendReason says why, for other users.
	AnnotationSuspendReason = "suspend-reason"
	// AnnotationReconcileAt asks for a full reconcile whenever its value changes. By
	// convention the value is the current time.
	AnnotationReconcileAt = "reconcile-at"
	// AnnotationRollbackTo is the number of an earlier revision of the component. Its manifests
	// are applied in place of those that the spec leads to, until the annotation is removed.
	AnnotationRollbackTo = "rollback-to"
	// AnnotationRequireApproval, if "true", lets each new revision of the component wait until
	// its plan is approved; "false" does not, whatever the operator's default is.
	AnnotationRequireApproval = "require-approval"
	// AnnotationApprove is the hash of a plan that waits for its approval, as the status has it.
	AnnotationApprove = "approve"
	// AnnotationAllowEmpty, if "true", lets a component that renders nothing
	// remove all its dependents. Otherwise that counts as a mistake.
	AnnotationAllowEmpty = "allow-empty"
	// AnnotationSkipDeleteHooks, if "true", deletes the component without the
	// objects that are to run before and after its deletion.
	AnnotationSkipDeleteHooks = "skip-delete-hooks"
	// AnnotationAbandon, if "true", drops the inventory of a
	// component that is being deleted, and orphans its dependents as they are.
	AnnotationAbandon = "abandon"
)
