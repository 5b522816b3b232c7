// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// PolicySpec implements PolicyConfiguration.
//
// +kubebuilder:object:generate=true
type PolicySpec struct {
	// AdoptionPolicy says what happens when a dependent object exists already and is not ours.
	// +optional
	AdoptionPolicy v1alpha1.AdoptionPolicy `json:"adoptionPolicy,omitempty"`
	// UpdatePolicy says how dependent objects are written.
	// +optional
	UpdatePolicy v1alpha1.UpdatePolicy `json:"updatePolicy,omitempty"`
	// DeletePolicy says what happens to dependent objects that are no longer wanted.
	// +optional
	DeletePolicy v1alpha1.DeletePolicy `json:"deletePolicy,omitempty"`
	// MissingNamespacesPolicy says whether missing namespaces are created.
	// +optional
	MissingNamespacesPolicy v1alpha1.MissingNamespacesPolicy `json:"missingNamespacesPolicy,omitempty"`
}

// GetAdoptionPolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetAdoptionPolicy() reconciler.AdoptionPolicy {
	if s == nil {
		return ""
	}
	return s.AdoptionPolicy
}

// GetUpdatePolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetUpdatePolicy() reconciler.UpdatePolicy {
	if s == nil {
		return ""
	}
	return s.UpdatePolicy
}

// GetDeletePolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetDeletePolicy() reconciler.DeletePolicy {
	if s == nil {
		return ""
	}
	return s.DeletePolicy
}

// GetMissingNamespacesPolicy returns the policy, or nothing if the default applies.
func (s *PolicySpec) GetMissingNamespacesPolicy() reconciler.MissingNamespacesPolicy {
	if s == nil {
		return ""
	}
	return s.MissingNamespacesPolicy
}

// DriftSpec implements DriftConfiguration.
//
// +kubebuilder:object:generate=true
type DriftSpec struct {
	// DriftPolicy says what happens when somebody else changes or deletes dependent objects.
	// +optional
	DriftPolicy v1alpha1.DriftPolicy `json:"driftPolicy,omitempty"`
}

// GetDriftPolicy returns the policy, or nothing if the default applies.
func (s *DriftSpec) GetDriftPolicy() reconciler.DriftPolicy {
	if s == nil {
		return ""
	}
	return s.DriftPolicy
}

// TypeSpec implements TypeConfiguration.
//
// +kubebuilder:object:generate=true
type TypeSpec struct {
	// AdditionalManagedTypes are types that appear at run time, because of what
	// the dependent objects do. The group may be "*" or "*.suffix", the kind "*".
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	AdditionalManagedTypes []v1alpha1.TypeInfo `json:"additionalManagedTypes,omitempty"`
}

// GetAdditionalManagedTypes returns the types.
func (s *TypeSpec) GetAdditionalManagedTypes() []reconciler.TypeInfo {
	if s == nil {
		return nil
	}
	return s.AdditionalManagedTypes
}
