// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
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

type vaultList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []vault `json:"items"`
}

func (l *vaultList) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]vault, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*vault)
	}
	return &c
}

func vaultScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(vaultVersion.WithKind("Vault"), &vault{})
	scheme.AddKnownTypeWithName(vaultVersion.WithKind("VaultList"), &vaultList{})
	metav1.AddToGroupVersion(scheme, vaultVersion)
	return scheme
}

func vaultCRD() *apiextensionsv1.CustomResourceDefinition {
	type props = map[string]apiextensionsv1.JSONSchemaProps
	object := func(p props) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: p}
	}
	text, number := apiextensionsv1.JSONSchemaProps{Type: "string"}, apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	date := apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
	condition := object(props{"type": text, "status": text, "reason": text, "message": text, "observedGeneration": number, "lastTransitionTime": date})
	root := object(props{
		"spec": object(props{"size": number}),
		"status": object(props{
			"observedGeneration": number, "size": number,
			"external":   object(props{"name": text, "token": text, "phase": text, "since": date}),
			"conditions": {Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &condition}},
		}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "vaults." + vaultVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: vaultVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "vaults", Singular: "vault", Kind: "Vault", ListKind: "VaultList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: vaultVersion.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &root},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}
