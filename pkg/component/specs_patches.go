// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import "github.com/corbel-run/corbel/api/v1alpha1"

// PatchesSpec implements PatchesConfiguration. It lets the users of an operator
// change what its author did not foresee, as in a kustomization.
//
// +kubebuilder:object:generate=true
type PatchesSpec struct {
	// Patches change the dependent objects after they were rendered, one after the other.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Patches []v1alpha1.Patch `json:"patches,omitempty"`
	// Images are replaced wherever containers of dependent objects use them, after the patches.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Images []v1alpha1.Image `json:"images,omitempty"`
}

// GetPatches returns the patches.
func (s *PatchesSpec) GetPatches() []v1alpha1.Patch {
	if s == nil {
		return nil
	}
	return s.Patches
}

// GetImages returns the images.
func (s *PatchesSpec) GetImages() []v1alpha1.Image {
	if s == nil {
		return nil
	}
	return s.Images
}
