// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmdocs

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ShopValues has the values of the chart that are typed.
type ShopValues struct {
	// Number of pods. It is ignored if autoscaling is enabled. The chart sets 2 by default.
	// +optional
	ReplicaCount *int64 `json:"replicaCount,omitempty"`

	// +optional
	Image *ShopValuesImage `json:"image,omitempty"`

	// Secrets to pull images with
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitzero"`

	// Free settings
	// +optional
	Settings map[string]apiextensionsv1.JSON `json:"settings,omitzero"`

	// Seconds until a request ends
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=600
	Timeout *int64 `json:"timeout,omitempty"`

	// Port of the administration. The chart sets "http" by default.
	// +optional
	// +kubebuilder:validation:XIntOrString
	AdminPort *intstr.IntOrString `json:"adminPort,omitempty"`

	// Level of the log. The chart sets "info" by default.
	// +optional
	// +kubebuilder:validation:Enum={"debug","info","warn"}
	LogLevel *string `json:"logLevel,omitempty"`

	// The chart sets 0.5 by default.
	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=number
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1
	Ratio *apiextensionsv1.JSON `json:"ratio,omitempty"`

	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern="^[a-z0-9-]*$"
	NameOverride *string `json:"nameOverride,omitempty"`

	// plus kubebuilder:default=3 is not a marker here
	// +optional
	ServiceAccount *ShopValuesServiceAccount `json:"serviceAccount,omitempty"`

	// The chart sets {"example.com/team":"shop"} by default.
	// +optional
	PodAnnotations map[string]string `json:"podAnnotations,omitzero"`

	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// The chart sets {"runAsNonRoot":true} by default.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// +optional
	Ingress *ShopValuesIngress `json:"ingress,omitempty"`

	// The chart sets {"rollingUpdate":{"maxSurge":"25%","maxUnavailable":1}} by default.
	// +optional
	Strategy *appsv1.DeploymentStrategy `json:"strategy,omitempty"`

	// The chart sets [{"name":"MODE","value":"production"}] by default.
	// +optional
	Env []corev1.EnvVar `json:"env,omitzero"`

	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// These have different types. The chart sets [1,"two",false] by default.
	// +optional
	Mixture []apiextensionsv1.JSON `json:"mixture,omitzero"`

	// The chart sets [8080,"http"] by default.
	// +optional
	Ports []intstr.IntOrString `json:"ports,omitzero"`

	// The chart sets [[1,2],[3]] by default.
	// +optional
	Matrix [][]int64 `json:"matrix,omitzero"`

	// The chart sets true by default.
	// +optional
	X9to5 *bool `json:"9to5,omitempty"`

	// The chart sets "go" by default.
	// +optional
	Func *string `json:"func,omitempty"`

	// The chart sets 1 by default.
	// +optional
	ReplicaCount2 *int64 `json:"Replica-Count,omitempty"`

	// The chart sets 2 by default.
	// +optional
	ReplicaCount3 *int64 `json:"replica_count,omitempty"`

	// The chart sets 3 by default.
	// +optional
	REPLICACOUNT *int64 `json:"REPLICACOUNT,omitempty"`

	// The chart sets 1 by default.
	// +optional
	Größe *int64 `json:"größe,omitempty"`

	// The chart sets "x" by default.
	// +optional
	X日本 *string `json:"日本,omitempty"`
}

// ShopValuesImage has the values below image.
type ShopValuesImage struct {
	// Repository of the image. The chart sets "registry.example.com/shop" by default.
	// +optional
	Repository *string `json:"repository,omitempty"`

	// Tag of the image. Default: the version of the chart.
	// +optional
	Tag *string `json:"tag,omitempty"`
}

// ShopValuesServiceAccount has the values below serviceAccount.
type ShopValuesServiceAccount struct {
	// The chart sets true by default.
	// +optional
	Create *bool `json:"create,omitempty"`

	// +optional
	Annotations map[string]string `json:"annotations,omitzero"`
}

// ShopValuesIngress has the values below ingress.
type ShopValuesIngress struct {
	// The chart sets false by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// +optional
	ClassName *string `json:"className,omitempty"`

	// The chart has a default.
	// +optional
	Hosts []ShopValuesIngressHosts `json:"hosts,omitzero"`

	// +optional
	TLS []networkingv1.IngressTLS `json:"tls,omitzero"`
}

// ShopValuesIngressHosts has the values below ingress.hosts.
type ShopValuesIngressHosts struct {
	// +optional
	Host *string `json:"host,omitempty"`

	// +optional
	Paths []ShopValuesIngressHostsPaths `json:"paths,omitzero"`

	// +optional
	Weight *int64 `json:"weight,omitempty"`
}

// ShopValuesIngressHostsPaths has the values below ingress.hosts.paths.
type ShopValuesIngressHostsPaths struct {
	// +optional
	Path *string `json:"path,omitempty"`

	// +optional
	PathType *string `json:"pathType,omitempty"`
}
