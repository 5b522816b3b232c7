// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package types

import corev1 "k8s.io/api/core/v1"

// The types of this file are parts of specs that the values of most charts have, too. The names in JSON are the usual ones.

// ImageSpec is a field of a spec that names a container image:
//
//	Image types.ImageSpec `json:"image,omitempty"`
//
// +kubebuilder:object:generate=true
type ImageSpec struct {
	// Repository is the name of the image without tag and digest.
	// +optional
	Repository string `json:"repository,omitempty"`
	// Tag is the tag of the image, or its digest after an @.
	// +optional
	Tag string `json:"tag,omitempty"`
	// PullPolicy says when the kubelet pulls the image.
	// +optional
	// +kubebuilder:validation:Enum=Always;Never;IfNotPresent
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty"`
	// PullSecret is the name of the Secret for the registry.
	// +optional
	PullSecret string `json:"pullSecret,omitempty"`
}

// PodProperties are properties of pods that the administrator of a cluster decides. Embed it inline.
//
// +kubebuilder:object:generate=true
type PodProperties struct {
	// NodeSelector has the labels that the node of a pod must have.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Affinity attracts pods to nodes and to other pods, or keeps them apart.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// TopologySpreadConstraints spread pods over zones and nodes.
	// +optional
	// +listType=atomic
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	// Tolerations admit pods to nodes with taints.
	// +optional
	// +listType=atomic
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClassName is the priority class of pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// PodSecurityContext holds for all containers of a pod.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`
	// PodLabels are added to the labels of pods.
	// +optional
	PodLabels map[string]string `json:"podLabels,omitempty"`
	// PodAnnotations are added to the annotations of pods.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitempty"`
}

// ContainerProperties are properties of a container that the administrator of a cluster decides. Embed it inline.
//
// +kubebuilder:object:generate=true
type ContainerProperties struct {
	// Resources are the requests and the limits of the container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// SecurityContext holds for the container.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}
