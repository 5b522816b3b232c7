// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/lifecycle/external"
)

var vaultVersion = schema.GroupVersion{Group: "test.corbel.run", Version: "v1"}

// vault is a custom resource that stands for a room in a bank.
type vault struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   vaultSpec   `json:"spec,omitempty"`
	Status vaultStatus `json:"status,omitempty"`
}

type vaultSpec struct {
	Size int64 `json:"size,omitempty"`
}

type vaultStatus struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	External           external.Record    `json:"external,omitempty"`
	Size               int64              `json:"size,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

func (v *vault) GetExternal() *external.Record               { return &v.Status.External }
func (v *vault) GetConditions() []metav1.Condition           { return v.Status.Conditions }
func (v *vault) SetConditions(conditions []metav1.Condition) { v.Status.Conditions = conditions }
func (v *vault) DeepCopyObject() runtime.Object {
	c := *v
	c.ObjectMeta = *v.ObjectMeta.DeepCopy()
	c.Status.External = *v.Status.External.DeepCopy()
	c.Status.Conditions = slices.Clone(v.Status.Conditions)
	return &c
}

func vaultScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(vaultVersion.WithKind("Vault"), &vault{})
	metav1.AddToGroupVersion(scheme, vaultVersion)
	return scheme
}
