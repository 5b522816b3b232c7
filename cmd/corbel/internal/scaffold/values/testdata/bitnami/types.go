// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package bitnami

import (
	"github.com/corbel-run/corbel/pkg/component"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CacheValues has the values of the chart that are typed.
type CacheValues struct {
	// +optional
	Global *CacheValuesGlobal `json:"global,omitempty"`

	// Labels of all objects
	// +optional
	CommonLabels map[string]string `json:"commonLabels,omitzero"`

	// Domain of the cluster. The chart sets "cluster.local" by default.
	// +optional
	ClusterDomain *string `json:"clusterDomain,omitempty"`

	// Image of the cache
	// +optional
	Image *CacheValuesImage `json:"image,omitempty"`

	// Architecture. Allowed values: `standalone` or `replication`. The chart sets "replication" by
	// default.
	// +optional
	Architecture *string `json:"architecture,omitempty"`

	// Configuration of the cache. The chart sets "# A line that is no comment.\nappendonly yes" by
	// default.
	// +optional
	Configuration *string `json:"configuration,omitempty"`

	// Flags of the process
	// +optional
	ExtraFlags []string `json:"extraFlags,omitzero"`

	// +optional
	Primary *CacheValuesPrimary `json:"primary,omitempty"`

	// +optional
	Auth *CacheValuesAuth `json:"auth,omitempty"`

	// +optional
	Metrics *CacheValuesMetrics `json:"metrics,omitempty"`
}

// CacheValuesGlobal has the values below global.
type CacheValuesGlobal struct {
	// Registry of all images
	// +optional
	ImageRegistry *string `json:"imageRegistry,omitempty"`

	// Storage class of all volumes
	// +optional
	StorageClass *string `json:"storageClass,omitempty"`
}

// CacheValuesImage has the values below image.
type CacheValuesImage struct {
	// Registry of the image. The chart sets "registry.example.com" by default.
	// +optional
	Registry *string `json:"registry,omitempty"`

	// Repository of the image. The chart sets "example/cache" by default.
	// +optional
	Repository *string `json:"repository,omitempty"`

	// The chart sets "8.0.1" by default.
	// +optional
	Tag *string `json:"tag,omitempty"`

	// Pull policy of the image. The chart sets "IfNotPresent" by default.
	// +optional
	PullPolicy *string `json:"pullPolicy,omitempty"`

	// Secrets to pull the image with
	// +optional
	PullSecrets []string `json:"pullSecrets,omitzero"`
}

// CacheValuesPrimary has the values below primary.
type CacheValuesPrimary struct {
	// Number of primaries. The chart sets 1 by default.
	// +optional
	Count *int64 `json:"count,omitempty"`

	// Number of revisions to keep
	// +optional
	// +kubebuilder:validation:XIntOrString
	RevisionHistoryLimit *intstr.IntOrString `json:"revisionHistoryLimit,omitempty"`

	// Liveness probe of the container
	// +optional
	LivenessProbe *CacheValuesPrimaryLivenessProbe `json:"livenessProbe,omitempty"`

	// Probe instead of the default one
	// +optional
	CustomLivenessProbe *corev1.Probe `json:"customLivenessProbe,omitempty"`

	// Requests and limits
	// +optional
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// +optional
	PodSecurityContext *CacheValuesPrimaryPodSecurityContext `json:"podSecurityContext,omitempty"`

	// +optional
	ContainerSecurityContext *CacheValuesPrimaryContainerSecurityContext `json:"containerSecurityContext,omitempty"`

	// Tolerations of the pods
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitzero"`

	// +optional
	NodeAffinityPreset *CacheValuesPrimaryNodeAffinityPreset `json:"nodeAffinityPreset,omitempty"`

	// The chart sets {"type":"RollingUpdate"} by default.
	// +optional
	UpdateStrategy *appsv1.DeploymentStrategy `json:"updateStrategy,omitempty"`

	// +optional
	Pdb *CacheValuesPrimaryPdb `json:"pdb,omitempty"`

	// +optional
	Service *CacheValuesPrimaryService `json:"service,omitempty"`

	// +optional
	Persistence *CacheValuesPrimaryPersistence `json:"persistence,omitempty"`
}

// CacheValuesPrimaryLivenessProbe has the values below primary.livenessProbe.
type CacheValuesPrimaryLivenessProbe struct {
	corev1.Probe `json:",inline"`

	// Enable the probe. The chart sets true by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// CacheValuesPrimaryPodSecurityContext has the values below primary.podSecurityContext.
type CacheValuesPrimaryPodSecurityContext struct {
	corev1.PodSecurityContext `json:",inline"`

	// Enable the security context of the pod. The chart sets true by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// CacheValuesPrimaryContainerSecurityContext has the values below primary.containerSecurityContext.
type CacheValuesPrimaryContainerSecurityContext struct {
	corev1.SecurityContext `json:",inline"`

	// The chart sets true by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// CacheValuesPrimaryNodeAffinityPreset has the values below primary.nodeAffinityPreset.
type CacheValuesPrimaryNodeAffinityPreset struct {
	// +optional
	Type *string `json:"type,omitempty"`

	// +optional
	Values []string `json:"values,omitzero"`
}

// CacheValuesPrimaryPdb has the values below primary.pdb.
type CacheValuesPrimaryPdb struct {
	// The chart sets true by default.
	// +optional
	Create *bool `json:"create,omitempty"`

	// Pods that stay available
	// +optional
	// +kubebuilder:validation:XIntOrString
	MinAvailable *intstr.IntOrString `json:"minAvailable,omitempty"`
}

// CacheValuesPrimaryService has the values below primary.service.
type CacheValuesPrimaryService struct {
	// The chart sets "ClusterIP" by default.
	// +optional
	Type *string `json:"type,omitempty"`

	// +optional
	Ports *CacheValuesPrimaryServicePorts `json:"ports,omitempty"`

	// +optional
	NodePorts *CacheValuesPrimaryServiceNodePorts `json:"nodePorts,omitempty"`

	// +optional
	ExtraPorts []corev1.ServicePort `json:"extraPorts,omitzero"`
}

// CacheValuesPrimaryServicePorts has the values below primary.service.ports.
type CacheValuesPrimaryServicePorts struct {
	// The chart sets 6379 by default.
	// +optional
	Cache *int64 `json:"cache,omitempty"`
}

// CacheValuesPrimaryServiceNodePorts has the values below primary.service.nodePorts.
type CacheValuesPrimaryServiceNodePorts struct {
	// +optional
	// +kubebuilder:validation:XIntOrString
	Cache *intstr.IntOrString `json:"cache,omitempty"`
}

// CacheValuesPrimaryPersistence has the values below primary.persistence.
type CacheValuesPrimaryPersistence struct {
	// The chart sets true by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// +optional
	StorageClass *string `json:"storageClass,omitempty"`

	// The chart sets ["ReadWriteOnce"] by default.
	// +optional
	AccessModes []string `json:"accessModes,omitzero"`

	// The chart sets "8Gi" by default.
	// +optional
	Size *string `json:"size,omitempty"`

	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`
}

// CacheValuesAuth has the values below auth.
type CacheValuesAuth struct {
	// Password of the cache. The chart has a default.
	// +optional
	Password *component.SecretKeyReference `json:"password,omitempty" fallbackKeys:"password"`

	// Secret with the password
	// +optional
	ExistingSecret *component.SecretReference `json:"existingSecret,omitempty"`

	// The chart sets true by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
}

// CacheValuesMetrics has the values below metrics.
type CacheValuesMetrics struct {
	// The chart sets false by default.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// +optional
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ExtraArgs *apiextensionsv1.JSON `json:"extraArgs,omitempty"`
}

// SetSecrets puts the contents and names of Secrets into the values of the chart, in place of the references to them.
func (v *CacheValues) SetSecrets(values map[string]any) {
	if v.Auth != nil && v.Auth.Password != nil {
		values["auth"].(map[string]any)["password"] = string(v.Auth.Password.Value())
	}
	if v.Auth != nil && v.Auth.ExistingSecret != nil {
		values["auth"].(map[string]any)["existingSecret"] = v.Auth.ExistingSecret.Name
	}
}
