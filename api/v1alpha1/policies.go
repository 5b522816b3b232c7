// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AdoptionPolicy decides about a dependent object that exists already and is not ours.
//
// +kubebuilder:validation:Enum=IfUnowned;Never;Always;Ignore
type AdoptionPolicy string

const (
	// AdoptionPolicyIfUnowned adopts the object if it is unowned; an object
	// with another owner is an error that names the owner. This is the default.
	AdoptionPolicyIfUnowned AdoptionPolicy = "IfUnowned"
	// AdoptionPolicyNever refuses every object that exists and is not ours.
	AdoptionPolicyNever AdoptionPolicy = "Never"
	// AdoptionPolicyAlways adopts the object, whatever its owner.
	AdoptionPolicyAlways AdoptionPolicy = "Always"
	// AdoptionPolicyIgnore ignores the object: it is not written, recorded, deleted
	// or counted, and no other object waits for it. An object that does not exist is
	// created, and is ours from then on.
	AdoptionPolicyIgnore AdoptionPolicy = "Ignore"
)

// ReconcilePolicy decides when a dependent object is written again.
//
// +kubebuilder:validation:Enum=OnObjectChange;OnObjectOrComponentChange;Once;OncePerManifest
type ReconcilePolicy string

const (
	// ReconcilePolicyOnObjectChange writes the object when its manifest
	// changed or when it drifted. This is the default.
	ReconcilePolicyOnObjectChange ReconcilePolicy = "OnObjectChange"
	// ReconcilePolicyOnObjectOrComponentChange writes the object also when
	// anything in the component changed.
	ReconcilePolicyOnObjectOrComponentChange ReconcilePolicy = "OnObjectOrComponentChange"
	// ReconcilePolicyOnce applies the object once; afterwards it is never
	// touched again, nor recreated when it is deleted.
	ReconcilePolicyOnce ReconcilePolicy = "Once"
	// ReconcilePolicyOncePerManifest is the same as long as the manifest is: a
	// Job that is done, or was deleted, runs again only when its manifest
	// changed, or, if it has a time to live, when it went without having completed.
	ReconcilePolicyOncePerManifest ReconcilePolicy = "OncePerManifest"
)

// UpdatePolicy decides how a dependent object is written.
//
// +kubebuilder:validation:Enum=Replace;SsaMerge;SsaOverride;Recreate;RecreateOnImmutable
type UpdatePolicy string

const (
	// UpdatePolicyReplace sends the manifest as a PUT. This is the default.
	UpdatePolicyReplace UpdatePolicy = "Replace"
	// UpdatePolicySsaMerge uses server-side apply and does not touch fields of other
	// managers.
	UpdatePolicySsaMerge UpdatePolicy = "SsaMerge"
	// UpdatePolicySsaOverride uses server-side apply and reclaims the fields of one-off managers
	// such as kubectl and helm, but for ignored fields.
	UpdatePolicySsaOverride UpdatePolicy = "SsaOverride"
	// UpdatePolicyRecreate deletes and creates the object again when its manifest changed; drift is
	// repaired in place. Nothing is deleted before the server has accepted the new object in a dry
	// run.
	UpdatePolicyRecreate UpdatePolicy = "Recreate"
	// UpdatePolicyRecreateOnImmutable sends the manifest as a PUT, and recreates
	// the object if the server refuses to change an immutable field.
	UpdatePolicyRecreateOnImmutable UpdatePolicy = "RecreateOnImmutable"
)

// DeletePolicy decides about a dependent object that is no longer desired.
//
// +kubebuilder:validation:Enum=Delete;Orphan;OrphanOnApply;OrphanOnDelete
type DeletePolicy string

const (
	// DeletePolicyDelete deletes the object. This is the default.
	DeletePolicyDelete DeletePolicy = "Delete"
	// DeletePolicyOrphan keeps the object, and removes our ownership label and annotation.
	DeletePolicyOrphan DeletePolicy = "Orphan"
	// DeletePolicyOrphanOnApply orphans it when the manifests of the
	// component no longer contain it.
	DeletePolicyOrphanOnApply DeletePolicy = "OrphanOnApply"
	// DeletePolicyOrphanOnDelete orphans it when the component is deleted.
	DeletePolicyOrphanOnDelete DeletePolicy = "OrphanOnDelete"
)

// DriftPolicy decides about a dependent object that another client changed or deleted. Under each
// policy, a lost ownership label or annotation is put back, and a changed manifest is written.
//
// +kubebuilder:validation:Enum=Repair;Report;Ignore
type DriftPolicy string

const (
	// DriftPolicyRepair brings the object back to its manifest. This is the default.
	DriftPolicyRepair DriftPolicy = "Repair"
	// DriftPolicyReport does not change or recreate the object, and reports the client, the change
	// and the time.
	DriftPolicyReport DriftPolicy = "Report"
	// DriftPolicyIgnore does not change or recreate the object, and reports nothing.
	DriftPolicyIgnore DriftPolicy = "Ignore"
)

// MissingNamespacesPolicy decides about a namespace of dependent objects that does not exist and is
// not among the manifests.
//
// +kubebuilder:validation:Enum=Create;DoNotCreate
type MissingNamespacesPolicy string

const (
	// MissingNamespacesPolicyCreate creates the namespace. This is the default.
	MissingNamespacesPolicyCreate MissingNamespacesPolicy = "Create"
	// MissingNamespacesPolicyDoNotCreate lets the creation of the objects fail.
	MissingNamespacesPolicyDoNotCreate MissingNamespacesPolicy = "DoNotCreate"
)

// ManagementPolicy limits the actions of a reconciler on the resources of an object.
//
// +kubebuilder:validation:Enum=Manage;Skip;DetachOnDelete
type ManagementPolicy string

const (
	// ManagementPolicyManage creates, updates and deletes. This is the default.
	ManagementPolicyManage ManagementPolicy = "Manage"
	// ManagementPolicySkip only observes. When the object is deleted, its resources are orphaned.
	ManagementPolicySkip ManagementPolicy = "Skip"
	// ManagementPolicyDetachOnDelete creates and updates. When the object is deleted, its resources
	// are orphaned.
	ManagementPolicyDetachOnDelete ManagementPolicy = "DetachOnDelete"
)
