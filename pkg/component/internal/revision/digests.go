// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
)

// noisyAnnotations are written by tools for their own use; a change of them is no
// change of the component.
var noisyAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"kapp.k14s.io/original",
	"kapp.k14s.io/original-diff-md5",
	"objectset.rio.cattle.io/applied",
}

// Digests identify the state of a component.
type Digests struct {
	// Component covers the whole spec, the annotations, the references and the
	// generator. With it the timeout starts again, and objects under the reconcile
	// policy OnObjectOrComponentChange are written.
	Component string
	// Revision covers what a revision is counted by: the generator, its parameters, the
	// patches and the references. An annotation, or a field of the spec that the
	// generator does not get, is no part of it.
	Revision string
	// Generator identifies the generator as histories do.
	Generator string
	// From is "=" and the digest of the generator in Component and Revision. The generator may be an earlier one: see
	// same.go.
	From string
}

// DigestsOf returns the digests of a component with what its references have loaded, its patches, and the digest of the
// generator. The name is that of the reconciler.
func DigestsOf(c identity.Component, name string, found []references.Found, patches []v1alpha1.Patch, images []v1alpha1.Image, generator string, hasher digest.Hasher) (Digests, error) {
	annotations := maps.Clone(c.GetAnnotations())
	for _, request := range []string{name + "/" + vocabulary.AnnotationReconcileAt, name + "/" + vocabulary.AnnotationPreview, name + "/" + vocabulary.AnnotationRollout, vocabulary.AnnotationReconcileRequestedAt} {
		delete(annotations, request)
	}
	if len(annotations) == 0 {
		annotations = nil // no annotations and none but requests are the same
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(noisyAnnotations, key) })
	annotationsJSON, err := json.Marshal(annotations)
	if err != nil {
		return Digests{}, fmt.Errorf("digest of the annotations: %w", err)
	}
	parametersJSON, err := Parameters(c)
	if err != nil {
		return Digests{}, err
	}
	patchesJSON, err := patchesOf(patches, images)
	if err != nil {
		return Digests{}, err
	}
	whole := []string{strconv.FormatInt(c.GetGeneration(), 10), string(annotationsJSON), string(parametersJSON)}
	rendered := []string{string(parametersJSON), string(patchesJSON)}
	for _, reference := range found {
		if reference.IgnoredByDigest() {
			continue
		}
		content, loads := reference.Digest(hasher)
		whole = append(whole, reference.Path, content)
		if loads {
			rendered = append(rendered, reference.Path, content)
		}
	}
	if generator != "" {
		whole, rendered = append(whole, "generator", generator), append(rendered, "generator", generator)
	}
	return Digests{Component: hasher.Combine(whole...), Revision: hasher.Combine(rendered...), Generator: GeneratorID(generator), From: "=" + generator}, nil
}

// Parameters returns the parameters of the generator as JSON. Maps are marshalled in the order
// of their keys, so equal content is equal text.
func Parameters(c identity.Component) ([]byte, error) {
	var parameters map[string]any
	if spec := c.GetSpec(); !renders.IsNil(spec) {
		parameters = spec.ToUnstructured()
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("digest of the spec: %w", err)
	}
	return text, nil
}

// patchesOf returns patches as JSON, or nothing if there are none. They change the rendered objects, hooks included.
func patchesOf(patches []v1alpha1.Patch, images []v1alpha1.Image) ([]byte, error) {
	if len(patches) == 0 && len(images) == 0 {
		return nil, nil
	}
	text, err := json.Marshal([]any{patches, images})
	if err != nil {
		return nil, fmt.Errorf("digest of the patches: %w", err)
	}
	return text, nil
}

// GeneratorID identifies a generator by its digest, as histories do; it is empty if the generator reports none. It does
// not depend on the digest key.
func GeneratorID(sum string) string {
	if sum == "" {
		return ""
	}
	return digest.Combine("generator", sum)[:16]
}
