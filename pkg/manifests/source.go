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
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/types"
)

// DefaultValues returns the defaults of the generator.
func (t *transformed) DefaultValues() map[string]any { return renders.DefaultValues(t.generator) }

// SharedTypes returns the definitions of all generators; of two with one name the first counts.
func (j joined) SharedTypes() (shared []types.SharedType) {
	for _, g := range j {
		for _, t := range renders.SharedTypes(g) {
			if !slices.ContainsFunc(shared, func(first types.SharedType) bool { return first.Name == t.Name }) {
				shared = append(shared, t)
			}
		}
	}
	return shared
}

// SharedTypes returns the definitions of the generator as the object transformers change them. A definition that cannot be transformed is not shared.
func (t *transformed) SharedTypes() (shared []types.SharedType) {
	for _, one := range renders.SharedTypes(t.generator) {
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

// Source returns the first source that a generator reports.
func (j joined) Source() v1alpha1.Source {
	for _, g := range j {
		if source := renders.Source(g); source != (v1alpha1.Source{}) {
			return source
		}
	}
	return v1alpha1.Source{}
}

// Source returns the source of the generator.
func (t *transformed) Source() v1alpha1.Source { return renders.Source(t.generator) }

// Source says that there are files.
func (s *static) Source() v1alpha1.Source { return v1alpha1.Source{Generator: "files"} }
