// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Patch changes dependent objects after they were rendered. It is written as in a kustomization.
//
// +kubebuilder:object:generate=true
type Patch struct {
	// Patch is a strategic merge patch, or a list of JSON patch operations (RFC 6902), in YAML or JSON. A merge
	// patch of a type that is not part of Kubernetes replaces lists.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	Patch string `json:"patch"`
	// Target selects the changed objects.
	//
	// Default: the object with the kind and name that the merge patch holds; a JSON patch needs a target
	// +optional
	Target *PatchTarget `json:"target,omitempty"`
}

// PatchTarget selects objects. Group, version, kind, name and namespace are regular expressions for
// the whole value; an empty field matches everything.
//
// +kubebuilder:object:generate=true
type PatchTarget struct {
	// Group is the API group.
	//
	// Default: everything
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Group string `json:"group,omitempty"`
	// Version is the API version, without the group.
	//
	// Default: everything
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Version string `json:"version,omitempty"`
	// Kind is the kind.
	//
	// Default: everything
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Kind string `json:"kind,omitempty"`
	// Name is the name.
	//
	// Default: everything
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Namespace is the namespace; objects without one count as in the namespace of the deployment.
	//
	// Default: everything
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// LabelSelector is a selector such as "app=web,tier in (a,b)".
	//
	// Default: everything
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	LabelSelector string `json:"labelSelector,omitempty"`
	// AnnotationSelector is a selector for annotations.
	//
	// Default: everything
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AnnotationSelector string `json:"annotationSelector,omitempty"`
}

// Image replaces an image wherever containers use it. It is written as in a kustomization.
//
// +kubebuilder:object:generate=true
type Image struct {
	// Name is the image to replace, without tag and digest.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Name string `json:"name"`
	// NewName replaces the name.
	//
	// Default: the name stays
	// +optional
	// +kubebuilder:validation:MaxLength=512
	NewName string `json:"newName,omitempty"`
	// NewTag replaces tag and digest.
	//
	// Default: the tag stays, unless Digest is set
	// +optional
	// +kubebuilder:validation:MaxLength=128
	NewTag string `json:"newTag,omitempty"`
	// Digest replaces tag and digest, unless NewTag is there, too; then both are set.
	//
	// Default: the digest stays, unless NewTag is set
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Digest string `json:"digest,omitempty"`
}
