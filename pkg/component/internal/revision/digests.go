// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
)

// noisyAnnotations are written by tools for their own use; a change of them is no change of the component.
var noisyAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"kapp.k14s.io/original",
	"kapp.k14s.io/original-diff-md5",
	"objectset.rio.cattle.io/applied",
}

// Digests identify the state of a component.
type Digests struct {
	// Component covers the whole spec, the annotations, the references and the generator. With it the timeout starts again, and objects
	// under the reconcile policy OnObjectOrComponentChange are written.
	Component string
	// Revision covers the generator, its parameters, the patches and the references. An annotation, or a field of the spec that the
	// generator does not get, is no part of it.
	Revision string
	// Generator identifies the generator as histories do.
	Generator string
	// From is "=" and the digest of the generator in Component and Revision, which may be an earlier generator: see same.go.
	From string
}

// digestsWith returns the digests of a component for the digest of a generator. They cover what its references have loaded.
func (s *Source) digestsWith(ctx context.Context, obj identity.Component, generator string) (Digests, error) {
	key, err := s.DigestKey.Get(ctx)
	if err != nil {
		return Digests{}, err
	}
	annotations := maps.Clone(obj.GetAnnotations())
	for _, request := range []string{vocabulary.AnnotationReconcileAt, vocabulary.AnnotationPreview, vocabulary.AnnotationRollout} {
		delete(annotations, s.Self.Annotation(request))
	}
	delete(annotations, vocabulary.AnnotationReconcileRequestedAt)
	if len(annotations) == 0 {
		annotations = nil // no annotations and none but requests are the same
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(noisyAnnotations, key) })
	annotationsJSON, err := json.Marshal(annotations)
	if err != nil {
		return Digests{}, fmt.Errorf("digest of the annotations: %w", err)
	}
	parametersJSON, err := Parameters(obj)
	if err != nil {
		return Digests{}, err
	}
	var patchesJSON []byte // they change the rendered objects, hooks included
	if patches, images := s.Renderer.Patches(obj); len(patches) > 0 || len(images) > 0 {
		if patchesJSON, err = json.Marshal([]any{patches, images}); err != nil {
			return Digests{}, fmt.Errorf("digest of the patches: %w", err)
		}
	}
	hasher := digest.Hasher{Key: key}
	whole := []string{strconv.FormatInt(obj.GetGeneration(), 10), string(annotationsJSON), string(parametersJSON)}
	rendered := []string{string(parametersJSON), string(patchesJSON)}
	for _, reference := range s.References(obj) {
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

// Parameters returns the parameters of the generator as JSON, in which maps are in the order of their keys: equal content is equal text.
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

// GeneratorID identifies a generator by its digest, as histories do, without the digest key; it is empty if the generator reports none.
func GeneratorID(sum string) string {
	if sum == "" {
		return ""
	}
	return digest.Combine("generator", sum)[:16]
}
