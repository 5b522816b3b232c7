// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// Name is the name of the reconciler.
const Name = "bench.corbel.run"

// GroupVersion is that of Load.
var GroupVersion = schema.GroupVersion{Group: Name, Version: "v1"}

// Load is a component of any number of ConfigMaps.
type Load struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LoadSpec         `json:"spec,omitempty"`
	Status component.Status `json:"status,omitempty"`
}

// LoadSpec says which ConfigMaps there are.
type LoadSpec struct {
	component.RequeueSpec `json:",inline"`

	Objects int    `json:"objects,omitempty"`
	All     string `json:"all,omitempty"`
	One     string `json:"one,omitempty"`
	// Away puts every second object into a namespace that nothing brings; see Away.
	Away bool `json:"away,omitempty"`
	// Job adds a Job that ends and has a short time to live.
	Job bool `json:"job,omitempty"`
	// Chart makes it the objects of a chart; All is their cpu.
	Chart bool `json:"chart,omitempty"`
	// Versioned puts the version of the chart that the operator brings into each ConfigMap.
	Versioned bool `json:"versioned,omitempty"`
	// Note changes nothing that is rendered.
	Note string `json:"note,omitempty"`
}

// ToUnstructured returns the parameters as a map.
func (s *LoadSpec) ToUnstructured() map[string]any {
	return map[string]any{"objects": int64(s.Objects), "all": s.All, "one": s.One, "note": s.Note, "away": s.Away, "job": s.Job, "chart": s.Chart, "versioned": s.Versioned}
}

// Away is the namespace of every second object of a component, if it says so.
func Away(namespace, name string) string { return namespace + "-" + name }

// NamespaceOf returns where the object of that number is.
func (l *Load) NamespaceOf(i int) string {
	if l.Spec.Away && i%2 == 1 {
		return Away(l.Namespace, l.Name)
	}
	return l.Namespace
}

// GetSpec returns the parameters of the generator.
func (l *Load) GetSpec() types.Unstructurable { return &l.Spec }

// GetStatus returns Corbel's status.
func (l *Load) GetStatus() *component.Status { return &l.Status }

// Objects are the ConfigMaps of the component.
func (l *Load) Objects() subject.Objects {
	return subject.Objects{Prefix: l.Name, N: l.Spec.Objects, All: l.Spec.All, One: l.Spec.One}
}

// DeepCopyObject returns a copy.
func (l *Load) DeepCopyObject() runtime.Object {
	out := &Load{TypeMeta: l.TypeMeta, Spec: l.Spec, Status: *l.Status.DeepCopy()}
	l.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	l.Spec.RequeueSpec.DeepCopyInto(&out.Spec.RequeueSpec)
	return out
}

// LoadList is a list of Loads.
type LoadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Load `json:"items"`
}

// DeepCopyObject returns a copy.
func (l *LoadList) DeepCopyObject() runtime.Object {
	out := &LoadList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta, Items: make([]Load, len(l.Items))}
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Load)
	}
	return out
}

// Scheme knows Load and what the API server has by itself.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(GroupVersion, &Load{}, &LoadList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return scheme, clientgoscheme.AddToScheme(scheme)
}

// CRD is the definition of Load; its schema keeps every field.
func CRD() *apiextensionsv1.CustomResourceDefinition {
	anything := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "loads." + GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: GroupVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "loads", Singular: "load", Kind: "Load", ListKind: "LoadList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: GroupVersion.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type:       "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}
