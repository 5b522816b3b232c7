// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

// ConfigMapReference names a config map in the namespace of the component.
//
// +kubebuilder:object:generate=true
type ConfigMapReference struct {
	// Name is the name of the config map.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	data map[string]string `json:"-"` // nil: not loaded
}

// Data returns the content of the config map, which must not be changed; nil if
// the reference is not loaded.
func (r *ConfigMapReference) Data() map[string]string {
	if r == nil {
		return nil
	}
	return r.data
}

// ConfigMapKeyReference names a key of a config map in the namespace of the component.
//
// +kubebuilder:object:generate=true
type ConfigMapKeyReference struct {
	// Name is the name of the config map.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the config map; by default the first that exists of those that the operator expects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	value *string `json:"-"` // nil: not loaded
}

// Value returns the value of the key; it is empty if the reference is not loaded.
func (r *ConfigMapKeyReference) Value() string {
	if r == nil || r.value == nil {
		return ""
	}
	return *r.value
}

// SecretReference names a secret in the namespace of the component.
//
// +kubebuilder:object:generate=true
type SecretReference struct {
	// Name is the name of the secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	data map[string][]byte `json:"-"` // nil: not loaded
}

// Data returns the content of the secret, which must not be changed; nil if the
// reference is not loaded.
func (r *SecretReference) Data() map[string][]byte {
	if r == nil {
		return nil
	}
	return r.data
}

// SecretKeyReference names a key of a secret in the namespace of the component.
//
// +kubebuilder:object:generate=true
type SecretKeyReference struct {
	// Name is the name of the secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Key is the key in the secret; by default the first that exists of those that the operator expects.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`

	value []byte `json:"-"` // nil: not loaded
}

// Value returns the value of the key, which must not be changed; nil if the
// reference is not loaded.
func (r *SecretKeyReference) Value() []byte {
	if r == nil {
		return nil
	}
	return r.value
}
