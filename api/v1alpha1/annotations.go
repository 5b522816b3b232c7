// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Suffixes of the annotations that authors of operators write into manifests; the prefix is the name of the
// reconciler and a slash, as in "shop.example.com/apply-order".
const (
	// AnnotationAdoptionPolicy decides what happens if the object exists already and does not belong to the
	// component. A refused adoption stalls the component with the reason OwnerConflict.
	//
	// On: dependent objects
	// Level: migration
	// Format: one of if-unowned, never, always, ignore
	// Default: the field adoptionPolicy of PolicySpec, else the option AdoptionPolicy, else if-unowned
	// Example: shop.example.com/adoption-policy: always
	AnnotationAdoptionPolicy = "adoption-policy"
	// AnnotationReconcilePolicy decides when the object is written again after its creation.
	//
	// On: dependent objects
	// Level: daily
	// Format: one of on-object-change, on-object-or-component-change, once, once-per-manifest
	// Default: on-object-change
	// Example: shop.example.com/reconcile-policy: once
	AnnotationReconcilePolicy = "reconcile-policy"
	// AnnotationUpdatePolicy decides how the object is written. Only this annotation, and no option or spec,
	// recreates a Namespace, a CustomResourceDefinition, an APIService, a PersistentVolumeClaim or a
	// PersistentVolume.
	//
	// On: dependent objects
	// Level: special
	// Format: one of replace, ssa-merge, ssa-override, recreate, recreate-on-immutable
	// Default: the field updatePolicy of PolicySpec, else the option UpdatePolicy, else replace
	// Example: shop.example.com/update-policy: ssa-merge
	AnnotationUpdatePolicy = "update-policy"
	// AnnotationRecreatePropagation decides about the dependents of an object that is recreated, such as the pods
	// of a StatefulSet: "background" deletes them, "orphan" hands them over to the new object.
	//
	// On: dependent objects
	// Level: special
	// Format: one of background, orphan
	// Default: background
	// Example: shop.example.com/recreate-propagation: orphan
	AnnotationRecreatePropagation = "recreate-propagation"
	// AnnotationDeletePolicy decides whether the object is deleted or orphaned when the manifests no longer
	// contain it, and when the component is deleted.
	//
	// On: dependent objects
	// Level: daily
	// Format: one of delete, orphan, orphan-on-apply, orphan-on-delete
	// Default: the field deletePolicy of PolicySpec, else the option DeletePolicy, else delete; an annotation of
	// another tool can protect more
	// Example: shop.example.com/delete-policy: orphan-on-delete
	AnnotationDeletePolicy = "delete-policy"
	// AnnotationAllowBreakingChanges allows a change of a CustomResourceDefinition that breaks objects or clients
	// of its type. Otherwise the change is refused. Remove the annotation after the change.
	//
	// On: dependent objects that are definitions
	// Level: special
	// Format: true or false
	// Default: false
	// Example: shop.example.com/allow-breaking-changes: "true"
	AnnotationAllowBreakingChanges = "allow-breaking-changes"
	// AnnotationDriftPolicy decides what happens when another client changes or deletes the object. On the
	// component it counts for all dependents without one.
	//
	// On: dependent objects, or the component
	// Level: daily
	// Format: one of repair, report, ignore
	// Default: the field driftPolicy of DriftSpec, else the option DriftPolicy, else repair
	// Example: shop.example.com/drift-policy: report
	AnnotationDriftPolicy = "drift-policy"
	// AnnotationApplyOrder is the wave in which the object is applied. A wave starts when all objects of lower
	// waves are ready.
	//
	// On: dependent objects
	// Level: daily
	// Format: an integer from -32768 to 32767
	// Default: 0
	// Example: shop.example.com/apply-order: "5"
	AnnotationApplyOrder = "apply-order"
	// AnnotationDeleteOrder is the wave in which the object is removed. A wave starts when all objects of lower
	// waves are gone.
	//
	// On: dependent objects
	// Level: special
	// Format: an integer from -32768 to 32767
	// Default: 0
	// Example: shop.example.com/delete-order: "-5"
	AnnotationDeleteOrder = "delete-order"
	// AnnotationPurgeOrder is a wave. The operator deletes the object, such as a completed Job, at the end of the
	// wave, and does not create it again while its manifest is unchanged. A Namespace, a CustomResourceDefinition and an
	// APIService cannot be purged.
	//
	// On: dependent objects
	// Level: special
	// Format: an integer from -32768 to 32767
	// Default: none
	// Example: shop.example.com/purge-order: "5"
	AnnotationPurgeOrder = "purge-order"
	// AnnotationReapplyInterval is how often the object is written although neither it nor its manifest changed.
	//
	// On: dependent objects
	// Level: special
	// Format: a duration of at least 1m, such as 30m or 12h
	// Default: the field reapplyInterval of ReapplySpec, else never
	// Example: shop.example.com/reapply-interval: 12h
	AnnotationReapplyInterval = "reapply-interval"
	// AnnotationStatusHint names content that the status must have before the object is ready:
	// status.observedGeneration, a condition Ready, or conditions that must all be True.
	//
	// On: dependent objects
	// Level: special
	// Format: a list, separated by commas or line ends, of has-observed-generation, has-ready-condition and
	// conditions=TYPE;TYPE
	// Default: none
	// Example: shop.example.com/status-hint: has-observed-generation, conditions=Synced;Healthy
	AnnotationStatusHint = "status-hint"
	// AnnotationReadyWhen decides when the object is ready, in place of the rules for its type. The expression
	// sees the keys of a Secret, and not its values.
	//
	// On: dependent objects
	// Level: daily
	// Format: a CEL expression over the object, which is the variable self; its result is a bool; at most 4,096
	// characters
	// Default: the first rule of the option ReadyWhen that matches the type, else the rules for the type
	// Example: shop.example.com/ready-when: self.status.phase == 'Running'
	AnnotationReadyWhen = "ready-when"
	// AnnotationOutput publishes a value of the object in status.outputs of the component. A dot and the name of
	// the output follow. The object is not ready as long as the expression fails; an optional value, such as
	// self.?status.?host, does not fail. The output is secret if the object is a Secret, or if the manifests read
	// a Secret and the expression uses other fields than name, namespace and status.
	//
	// On: dependent objects
	// Level: daily
	// Format: a CEL expression over the object, which is the variable self; its result is a string, a number or a
	// bool of at most 1,024 bytes; at most 64 outputs a component
	// Default: none
	// Example: shop.example.com/output.host: self.spec.rules[0].host
	// Also: the option Outputs
	AnnotationOutput = "output"
	// AnnotationSecretOutput publishes a value as the annotation output does, but in the Secret with the name of
	// the component and the suffix -outputs.
	//
	// On: dependent objects
	// Level: daily
	// Format: as for output
	// Default: none
	// Example: shop.example.com/secret-output.password: self.data.password
	// Also: the option Outputs
	AnnotationSecretOutput = "secret-output"
	// AnnotationIgnoreFields names fields that the operator writes only when it creates the object. A later change
	// of these fields is no drift. A number in a pointer is the position in a list of the manifest.
	//
	// On: dependent objects
	// Level: daily
	// Format: JSON pointers (RFC 6901), separated by commas or line ends
	// Default: none; the rules of the option IgnoreFields count in addition
	// Example: shop.example.com/ignore-fields: /spec/replicas, /metadata/annotations/example.com~1touched
	AnnotationIgnoreFields = "ignore-fields"
	// AnnotationDependsOn names other objects of the component. The object is written when they are ready, and
	// removed before them.
	//
	// On: dependent objects
	// Level: daily
	// Format: references group/Kind/namespace/name, separated by commas or line ends; without group for core
	// types, without namespace if it is the same or none
	// Default: none
	// Example: shop.example.com/depends-on: apps/Deployment/database, Secret/credentials
	AnnotationDependsOn = "depends-on"
	// AnnotationRunOn lets the object run before or after the deletion of the ordinary objects, or with a
	// rollback. Package reconciler alone refuses rollback.
	//
	// On: dependent objects
	// Level: special
	// Format: one of pre-delete, post-delete, rollback
	// Default: none
	// Example: shop.example.com/run-on: pre-delete
	AnnotationRunOn = "run-on"
	// AnnotationRevision is a text. The object counts as changed only when the text changes, or when the object
	// has failed. The hooks of a chart have the revision of the component.
	//
	// On: dependent objects
	// Level: special
	// Format: text that is not empty
	// Default: none
	// Example: shop.example.com/revision: "7"
	AnnotationRevision = "revision"

	// AnnotationManagementPolicy limits the work of the operator for the component: only observe it (skip), or
	// keep its objects when it is deleted (detach-on-delete). On a namespace it counts for components without one,
	// if the option NamespaceManagementPolicies is set. An unknown value stalls the component. kubectl delete
	// --cascade=orphan sets detach-on-delete.
	//
	// On: the component, or its namespace
	// Level: special
	// Format: one of manage, skip, detach-on-delete
	// Default: the option ManagementPolicy, else manage
	// Example: shop.example.com/management-policy: skip
	AnnotationManagementPolicy = "management-policy"
)
