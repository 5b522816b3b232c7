// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package widget is a component type as an operator's author writes it. After a
// change, or a change of the types that it embeds, generate the rest:
//
//	controller-gen object crd paths=./pkg/component/testdata/widget output:crd:dir=pkg/component/testdata/crds
//
// +kubebuilder:object:generate=true
// +groupName=test.corbel.run
// +versionName=v1
package widget

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
)

// Widget is the custom resource.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=corbel
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// +optional
	Spec Spec `json:"spec,omitempty"`
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status Status `json:"status,omitempty"`
}

// WidgetList is what the API server answers to a list.
//
// +kubebuilder:object:root=true
type WidgetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// Spec has every ready-made part.
type Spec struct {
	component.PlacementSpec     `json:",inline"`
	component.ClientSpec        `json:",inline"`
	component.ImpersonationSpec `json:",inline"`
	component.SuspensionSpec    `json:",inline"`
	component.RequeueSpec       `json:",inline"`
	component.RetrySpec         `json:",inline"`
	component.TimeoutSpec       `json:",inline"`
	component.PolicySpec        `json:",inline"`
	component.DriftSpec         `json:",inline"`
	component.RollbackSpec      `json:",inline"`
	component.TypeSpec          `json:",inline"`
	component.ReapplySpec       `json:",inline"`
	component.PatchesSpec       `json:",inline"`
	component.RequirementsSpec  `json:",inline"`

	// Values become config maps: the key is the name, the value the content.
	// +optional
	Values map[string]string `json:"values,omitempty"`
	// Password refers to a key of a secret.
	// +optional
	Password *component.SecretKeyReference `json:"password,omitempty" fallbackKeys:"password,token"`
	// Settings refers to a whole config map.
	// +optional
	Settings *component.ConfigMapReference `json:"settings,omitempty"`
	// Texts refer to keys of config maps.
	// +optional
	Texts map[string]component.ConfigMapKeyReference `json:"texts,omitempty"`
}

// Status has a field of its own.
type Status struct {
	component.Status `json:",inline"`

	// Note is written by hooks.
	// +optional
	Note string `json:"note,omitempty"`
}

// ToUnstructured implements types.Unstructurable.
func (s *Spec) ToUnstructured() map[string]any {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s)
	if err != nil {
		panic(err)
	}
	return content
}

// GetSpec implements component.Component.
func (w *Widget) GetSpec() types.Unstructurable { return &w.Spec }

// GetStatus implements component.Component.
func (w *Widget) GetStatus() *component.Status { return &w.Status.Status }

// GroupVersion is the version of the type.
var GroupVersion = schema.GroupVersion{Group: "test.corbel.run", Version: "v1"}

// AddToScheme registers the type.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Widget{}, &WidgetList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
