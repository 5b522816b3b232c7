// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/types"
)

// Sourcer is a generator that can report, without rendering, its source, for people: the name and
// the version of a chart, for example. It stands in the status of components.
type Sourcer interface {
	// Source returns the source of the generator. Fields that do not apply are empty.
	Source() v1alpha1.Source
}

// Source returns the source of a generator; it is empty if the generator does not report it.
// Transform and Isolated report the source of the generator that they are made from, and Join
// reports the source of the first generator that has one.
func Source(g Generator) v1alpha1.Source {
	var source v1alpha1.Source
	if sourcer, ok := g.(Sourcer); ok && !isNil(g) {
		if err := guard.Call(func() error { source = sourcer.Source(); return nil }); err != nil {
			return v1alpha1.Source{}
		}
	}
	return source
}

// DefaultValuer is a generator with defaults for its parameters, as a chart has them in the file values.yaml.
type DefaultValuer interface {
	// DefaultValues returns a copy of the defaults.
	DefaultValues() map[string]any
}

// DefaultValues returns the defaults of a generator for its parameters; nil if it reports none.
// Transform and Isolated report the defaults of the generator that they are made from.
func DefaultValues(g Generator) map[string]any {
	var values map[string]any
	if valuer, ok := g.(DefaultValuer); ok && !isNil(g) {
		if err := guard.Call(func() error { values = valuer.DefaultValues(); return nil }); err != nil {
			return nil
		}
	}
	return values
}

// DefaultValues implements DefaultValuer.
func (t *transformed) DefaultValues() map[string]any { return DefaultValues(t.generator) }

// TypeSharer is a generator with definitions that are the same for all components, as a chart has
// them in the folder crds. They belong to the reconciler and to no component. Whether a component
// needs one depends on its rendered objects.
type TypeSharer interface {
	// SharedTypes returns the definitions, which the caller must not change.
	SharedTypes() []types.SharedType
}

// SharedTypes returns the definitions of a generator that all components share; nil if it reports
// none. Join and Isolated report the definitions of the generators that they are made from; of two
// with one name the first counts. Transform changes the definitions by its object transformers,
// which are called without a namespace and a name: if their results depend on these, components do
// not share the definition.
func SharedTypes(g Generator) []types.SharedType {
	var shared []types.SharedType
	if sharer, ok := g.(TypeSharer); ok && !isNil(g) {
		if err := guard.Call(func() error { shared = sharer.SharedTypes(); return nil }); err != nil {
			return nil
		}
	}
	return shared
}

// SharedTypes implements TypeSharer.
func (j joined) SharedTypes() (shared []types.SharedType) {
	for _, g := range j {
		for _, t := range SharedTypes(g) {
			if !slices.ContainsFunc(shared, func(first types.SharedType) bool { return first.Name == t.Name }) {
				shared = append(shared, t)
			}
		}
	}
	return shared
}

// SharedTypes implements TypeSharer. A definition that cannot be transformed is not shared.
func (t *transformed) SharedTypes() (shared []types.SharedType) {
	for _, one := range SharedTypes(t.generator) {
		if one.Definition == nil { // each component renders it
			shared = append(shared, one)
			continue
		}
		objects, err := t.transformObjects(context.Background(), "", "", []client.Object{one.Definition.DeepCopy()})
		if err != nil || len(objects) != 1 {
			continue
		}
		// A transformer may return a typed object, or numbers that JSON does not have.
		encoded, err := json.Marshal(objects[0])
		if one.Definition = (&unstructured.Unstructured{}); err == nil && one.Definition.UnmarshalJSON(encoded) == nil {
			shared = append(shared, one)
		}
	}
	return shared
}

// Source implements Sourcer.
func (j joined) Source() v1alpha1.Source {
	for _, g := range j {
		if source := Source(g); source != (v1alpha1.Source{}) {
			return source
		}
	}
	return v1alpha1.Source{}
}

// Source implements Sourcer.
func (t *transformed) Source() v1alpha1.Source { return Source(t.generator) }

// Source implements Sourcer.
func (s *static) Source() v1alpha1.Source { return v1alpha1.Source{Generator: "files"} }
