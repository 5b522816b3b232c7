// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is that of Widget.
var GroupVersion = schema.GroupVersion{Group: "test.corbel.run", Version: "v1"}

// Widget is the custom resource.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   Spec   `json:"spec,omitempty"`
	Status Status `json:"status,omitempty"`
}

// Spec is the desired state.
type Spec struct {
	Size int64 `json:"size,omitempty"`
	// Loaded stands for values that are loaded from elsewhere.
	Loaded string `json:"-"`
}

// Status is what is the case.
type Status struct {
	ObservedGeneration int64              `json:"observedGeneration,omitempty"`
	Phase              string             `json:"phase,omitempty"`
	Record             []Item             `json:"record,omitempty"`
	Conditions         []metav1.Condition `json:"conditions,omitempty"`
}

// Item is one entry of the record.
type Item struct {
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// GetConditions implements conditions.Getter.
func (w *Widget) GetConditions() []metav1.Condition { return w.Status.Conditions }

// SetConditions implements conditions.Setter.
func (w *Widget) SetConditions(conditions []metav1.Condition) { w.Status.Conditions = conditions }

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	c := *w
	c.ObjectMeta = *w.ObjectMeta.DeepCopy()
	c.Status.Record = slices.Clone(w.Status.Record)
	c.Status.Conditions = slices.Clone(w.Status.Conditions)
	return &c
}

// List is a list of widgets.
type List struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Widget `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *List) DeepCopyObject() runtime.Object {
	c := *l
	c.Items = make([]Widget, len(l.Items))
	for i := range l.Items {
		c.Items[i] = *l.Items[i].DeepCopyObject().(*Widget)
	}
	return &c
}

// AddToScheme adds the types to the scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypeWithName(GroupVersion.WithKind("Widget"), &Widget{})
	scheme.AddKnownTypeWithName(GroupVersion.WithKind("WidgetList"), &List{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Scheme returns a scheme that knows nothing but the widget.
func Scheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	_ = AddToScheme(scheme) // it returns an error only to fit a scheme builder
	return scheme
}

type props = map[string]apiextensionsv1.JSONSchemaProps

// CRD returns the definition of the widget. Change it to make it outdated.
func CRD() *apiextensionsv1.CustomResourceDefinition {
	text := apiextensionsv1.JSONSchemaProps{Type: "string"}
	number := apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	condition := object(props{
		"type": text, "status": text, "reason": text, "message": text, "observedGeneration": number,
		"lastTransitionTime": {Type: "string", Format: "date-time"},
	})
	schema := object(props{
		"spec": object(props{"size": number}),
		"status": object(props{
			"observedGeneration": number,
			"phase":              text,
			"record":             list(object(props{"name": text, "uid": text})),
			"conditions":         list(condition),
		}),
	})
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets." + GroupVersion.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: GroupVersion.Group,
			Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: GroupVersion.Version, Served: true, Storage: true,
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &schema},
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			}},
		},
	}
}

// StatusSchema returns the schema of status in the definition, to be changed.
func StatusSchema(crd *apiextensionsv1.CustomResourceDefinition) props {
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
}

func object(properties props) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "object", Properties: properties}
}

func list(element apiextensionsv1.JSONSchemaProps) apiextensionsv1.JSONSchemaProps {
	return apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &element}}
}
