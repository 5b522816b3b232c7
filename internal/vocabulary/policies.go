// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package vocabulary

import "github.com/corbel-run/corbel/api/v1alpha1"

// The values of each policy; the first is the default.
var (
	AdoptionPolicies          = []v1alpha1.AdoptionPolicy{v1alpha1.AdoptionPolicyIfUnowned, v1alpha1.AdoptionPolicyNever, v1alpha1.AdoptionPolicyAlways, v1alpha1.AdoptionPolicyIgnore}
	ReconcilePolicies         = []v1alpha1.ReconcilePolicy{v1alpha1.ReconcilePolicyOnObjectChange, v1alpha1.ReconcilePolicyOnObjectOrComponentChange, v1alpha1.ReconcilePolicyOnce, v1alpha1.ReconcilePolicyOncePerManifest}
	UpdatePolicies            = []v1alpha1.UpdatePolicy{v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicySsaOverride, v1alpha1.UpdatePolicyRecreate, v1alpha1.UpdatePolicyRecreateOnImmutable}
	DeletePolicies            = []v1alpha1.DeletePolicy{v1alpha1.DeletePolicyDelete, v1alpha1.DeletePolicyOrphan, v1alpha1.DeletePolicyOrphanOnApply, v1alpha1.DeletePolicyOrphanOnDelete}
	DriftPolicies             = []v1alpha1.DriftPolicy{v1alpha1.DriftPolicyRepair, v1alpha1.DriftPolicyReport, v1alpha1.DriftPolicyIgnore}
	MissingNamespacesPolicies = []v1alpha1.MissingNamespacesPolicy{v1alpha1.MissingNamespacesPolicyCreate, v1alpha1.MissingNamespacesPolicyDoNotCreate}
	ManagementPolicies        = []v1alpha1.ManagementPolicy{v1alpha1.ManagementPolicyManage, v1alpha1.ManagementPolicySkip, v1alpha1.ManagementPolicyDetachOnDelete}
)

// Adoption is the meaning of an adoption policy for an object that exists and that the component does not own.
type Adoption struct {
	// Unowned, EarlierIncarnation and Owned say which objects are adopted: objects without an owner, objects of an earlier
	// incarnation of the component, and objects of other owners.
	Unowned, EarlierIncarnation, Owned bool
	// IgnoresOthers: an object that is not adopted is neither written nor recorded, and counts as ready. Otherwise the component waits for it.
	IgnoresOthers bool
}

// RefusesAll reports whether the component waits until the object is gone, whatever owner the object has.
func (a Adoption) RefusesAll() bool { return a == Adoption{} }

// Adoptions has the meaning of each adoption policy.
var Adoptions = map[v1alpha1.AdoptionPolicy]Adoption{
	v1alpha1.AdoptionPolicyIfUnowned: {Unowned: true, EarlierIncarnation: true},
	v1alpha1.AdoptionPolicyNever:     {},
	v1alpha1.AdoptionPolicyAlways:    {Unowned: true, EarlierIncarnation: true, Owned: true},
	v1alpha1.AdoptionPolicyIgnore:    {EarlierIncarnation: true, IgnoresOthers: true},
}
