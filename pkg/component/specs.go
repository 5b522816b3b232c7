// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

// The ...Spec types are ready-made parts of a spec. Embed them inline:
//
//	type ShopSpec struct {
//		component.PlacementSpec `json:",inline"`
//		component.RequeueSpec   `json:",inline"`
//		...
//	}
//
// Their methods can be called on nil, so that they can be embedded as pointers, too.

// PlacementSpec implements PlacementConfiguration.
//
// +kubebuilder:object:generate=true
type PlacementSpec struct {
	// Namespace is where the dependent objects are put; the component's own namespace by default.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Name is the name that the dependent objects are rendered with; the component's own name by default.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
}

// GetDeploymentNamespace returns the namespace.
func (s *PlacementSpec) GetDeploymentNamespace() string {
	if s == nil {
		return ""
	}
	return s.Namespace
}

// GetDeploymentName returns the name.
func (s *PlacementSpec) GetDeploymentName() string {
	if s == nil {
		return ""
	}
	return s.Name
}

// ImpersonationSpec implements ImpersonationConfiguration.
//
// +kubebuilder:object:generate=true
type ImpersonationSpec struct {
	// ServiceAccountName is the service account, in the namespace of the
	// component, that the dependent objects are written by.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
}

// GetImpersonationUser returns the user name of the service account without its
// namespace, which the reconciler fills in.
func (s *ImpersonationSpec) GetImpersonationUser() string {
	if s == nil || s.ServiceAccountName == "" {
		return ""
	}
	return serviceAccountUser("", s.ServiceAccountName)
}

// GetImpersonationGroups returns nothing: the reconciler knows the groups of a service account.
func (s *ImpersonationSpec) GetImpersonationGroups() []string { return nil }

// SuspensionSpec implements SuspensionConfiguration.
//
// +kubebuilder:object:generate=true
type SuspensionSpec struct {
	// Suspend stops changes to the dependent objects until it is false again.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
}

// IsSuspended returns the value of the field.
func (s *SuspensionSpec) IsSuspended() bool { return s != nil && s.Suspend }

// ClientSpec implements ClientConfiguration.
//
// +kubebuilder:object:generate=true
type ClientSpec struct {
	// KubeConfig leads to the cluster that the dependent objects are put into; the component's own cluster by default.
	// +optional
	KubeConfig *KubeConfigSpec `json:"kubeConfig,omitempty"`
}

// KubeConfigSpec says where a kubeconfig is.
//
// +kubebuilder:object:generate=true
type KubeConfigSpec struct {
	// SecretRef is a secret in the namespace of the component. Without a key, the keys value, value.yaml and
	// value.yml are tried.
	SecretRef SecretKeyReference `json:"secretRef" fallbackKeys:"value,value.yaml,value.yml" notFoundPolicy:"waitOnDeletion" digest:"ignore"`
}

// GetKubeConfig returns nil if no kubeconfig is referenced. If one is, but is not
// loaded, it returns what is not nil and not usable, so that the component is not
// taken for one without a kubeconfig.
func (s *ClientSpec) GetKubeConfig() []byte {
	if s == nil || s.KubeConfig == nil {
		return nil
	}
	if kubeConfig := s.KubeConfig.SecretRef.Value(); kubeConfig != nil {
		return kubeConfig
	}
	return []byte{}
}
