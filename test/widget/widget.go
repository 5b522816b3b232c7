// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package widget

import (
	"slices"

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

// Spec is what is wanted.
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
