// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"

	"k8s.io/utils/ptr"

	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/types"
)

// RequirementsSpec names the objects that a component requires, such as other components.
//
// Requirements may be anywhere in a spec, and are loaded when references are. While an object does not exist, is not ready or lacks
// an output, the component waits, and Ready names the object. What was applied before stays, and is repaired. The deletion of the
// component does not wait. Components that require each other, also by way of others, wait until one of them does not.
//
// +kubebuilder:object:generate=true
type RequirementsSpec struct {
	// Requires are the objects that have to be ready before the component is applied.
	//
	// Default: none
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	Requires []Requirement `json:"requires,omitempty"`
}

// Input returns the value of the input of this path; it is empty if no requirement has loaded it.
func (s *RequirementsSpec) Input(path string) (value string) {
	for _, r := range ptr.Deref(s, RequirementsSpec{}).Requires {
		value = cmp.Or(value, r.Input(path))
	}
	return value
}

// Requirement names an object that a component requires, of any type that the operator may get, list and watch.
//
// +kubebuilder:object:generate=true
type Requirement struct {
	// APIVersion is the group and the version of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	APIVersion string `json:"apiVersion"`
	// Kind is the kind of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind"`
	// Name is the name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// Namespace is the namespace of the object. Another one than that of the component has to be among those of the option
	// RequireNamespaces.
	//
	// Default: the namespace of the component
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace,omitempty"`
	// Condition is an expression of CEL that says whether the object is ready, such as self.status.phase == 'Running'. The object is self,
	// with its name, its namespace, its generation and its status.
	//
	// Default: condition Ready is True; of a type of Kubernetes itself the object is ready as a dependent would be
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Condition string `json:"condition,omitempty"`
	// Inputs are outputs of the object that become parameters: the key is a path in the parameters, such as database.host, the value
	// the name of the output.
	//
	// Default: none
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Inputs map[string]string `json:"inputs,omitempty"`

	loaded map[string][]byte `json:"-"` // see references.Source
}

// Input returns the value of the input of this path; it is empty if it is not loaded.
func (r *Requirement) Input(path string) string {
	return string(ptr.Deref(r, Requirement{}).loaded[path])
}

// parametersOf returns the spec of a component as the parameters of its generator, with the inputs of its requirements.
func (a authorType) parametersOf(obj identity.Component) types.Unstructurable {
	found, _ := a.finder.Find(specOf(obj))
	if with := references.WithInputs(found, func() map[string]any { return obj.GetSpec().ToUnstructured() }); with != nil {
		return specWithInputs{with, specOf(obj)}
	}
	return obj.GetSpec()
}

// specWithInputs are parameters with inputs, and the spec that they are made from.
type specWithInputs struct {
	types.UnstructurableMap
	spec any
}

// Unwrap returns the spec to renders.SpecOf.
func (p specWithInputs) Unwrap() any { return p.spec }
