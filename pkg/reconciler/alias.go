// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

type (
	// AdoptionPolicy says what happens when an object exists and is not ours.
	AdoptionPolicy = v1alpha1.AdoptionPolicy
	// ReconcilePolicy says when an object is written again.
	ReconcilePolicy = v1alpha1.ReconcilePolicy
	// UpdatePolicy says how an object is written.
	UpdatePolicy = v1alpha1.UpdatePolicy
	// DeletePolicy says what happens to an object that is no longer wanted.
	DeletePolicy = v1alpha1.DeletePolicy
	// DriftPolicy says what happens when somebody else changed or deleted an object.
	DriftPolicy = v1alpha1.DriftPolicy
	// MissingNamespacesPolicy says whether missing namespaces are created.
	MissingNamespacesPolicy = v1alpha1.MissingNamespacesPolicy
	// TypeInfo identifies one or several Kubernetes types.
	TypeInfo = v1alpha1.TypeInfo
	// Inventory is the durable record of the dependent objects.
	Inventory = v1alpha1.Inventory
	// InventoryItem is the record of one dependent object.
	InventoryItem = v1alpha1.InventoryItem
	// InventoryType is a type of recorded objects.
	InventoryType = v1alpha1.InventoryType
)

// The values of the policies; see package v1alpha1 for what they mean.
const (
	AdoptionPolicyIfUnowned = v1alpha1.AdoptionPolicyIfUnowned
	AdoptionPolicyNever     = v1alpha1.AdoptionPolicyNever
	AdoptionPolicyAlways    = v1alpha1.AdoptionPolicyAlways
	AdoptionPolicyIgnore    = v1alpha1.AdoptionPolicyIgnore

	ReconcilePolicyOnObjectChange            = v1alpha1.ReconcilePolicyOnObjectChange
	ReconcilePolicyOncePerManifest           = v1alpha1.ReconcilePolicyOncePerManifest
	ReconcilePolicyOnObjectOrComponentChange = v1alpha1.ReconcilePolicyOnObjectOrComponentChange
	ReconcilePolicyOnce                      = v1alpha1.ReconcilePolicyOnce

	UpdatePolicyReplace             = v1alpha1.UpdatePolicyReplace
	UpdatePolicySsaMerge            = v1alpha1.UpdatePolicySsaMerge
	UpdatePolicySsaOverride         = v1alpha1.UpdatePolicySsaOverride
	UpdatePolicyRecreate            = v1alpha1.UpdatePolicyRecreate
	UpdatePolicyRecreateOnImmutable = v1alpha1.UpdatePolicyRecreateOnImmutable

	DeletePolicyDelete         = v1alpha1.DeletePolicyDelete
	DeletePolicyOrphan         = v1alpha1.DeletePolicyOrphan
	DeletePolicyOrphanOnApply  = v1alpha1.DeletePolicyOrphanOnApply
	DeletePolicyOrphanOnDelete = v1alpha1.DeletePolicyOrphanOnDelete

	DriftPolicyRepair = v1alpha1.DriftPolicyRepair
	DriftPolicyReport = v1alpha1.DriftPolicyReport
	DriftPolicyIgnore = v1alpha1.DriftPolicyIgnore

	MissingNamespacesPolicyCreate      = v1alpha1.MissingNamespacesPolicyCreate
	MissingNamespacesPolicyDoNotCreate = v1alpha1.MissingNamespacesPolicyDoNotCreate
)

// WaitReason classifies a Wait.
type WaitReason = plan.WaitReason

// The reasons of waiting.
const (
	WaitReady         = plan.WaitReady
	WaitFailed        = plan.WaitFailed
	WaitOrder         = plan.WaitOrder
	WaitGone          = plan.WaitGone
	WaitType          = plan.WaitType
	WaitUnknown       = plan.WaitUnknown
	WaitForbidden     = plan.WaitForbidden
	WaitOwner         = plan.WaitOwner
	WaitBlocked       = plan.WaitBlocked
	WaitError         = plan.WaitError
	WaitConflict      = plan.WaitConflict
	WaitNamespaceGone = plan.WaitNamespaceGone
)

// ParseDriftPolicy reads the value of an annotation, in kebab-case or CamelCase.
// The error lists the values that there are.
func ParseDriftPolicy(value string) (DriftPolicy, error) { return policy.ParseDrift(value) }
