// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// noisyAnnotations are written by tools for their own use; a change of them is no
// change of the component.
var noisyAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"kapp.k14s.io/original",
	"kapp.k14s.io/original-diff-md5",
	"objectset.rio.cattle.io/applied",
}

// digestOf identifies the state of the component that its dependents follow from.
func (h *handler[T]) digestOf(ctx context.Context, obj T) (string, error) {
	key, err := h.digestKey.get(ctx)
	if err != nil {
		return "", err
	}
	references, _ := h.finder.find(obj.GetSpec())
	return digestOf(obj, references, manifests.Digest(h.generator), digest.Hasher{Key: key})
}

func digestOf(c Component, references []found, generator string, hasher digest.Hasher) (string, error) {
	annotations := maps.Clone(c.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return isNoisy(key) })
	annotationsJSON, err := json.Marshal(annotations)
	if err != nil {
		return "", fmt.Errorf("digest of the annotations: %w", err)
	}
	var parameters map[string]any
	if spec := c.GetSpec(); !isNil(spec) {
		parameters = spec.ToUnstructured()
	}
	// Maps are marshalled in the order of their keys, so equal content is equal text.
	specJSON, err := json.Marshal(parameters)
	if err != nil {
		return "", fmt.Errorf("digest of the spec: %w", err)
	}
	parts := []string{strconv.FormatInt(c.GetGeneration(), 10), string(annotationsJSON), string(specJSON)}
	for _, reference := range references {
		if reference.ignoredByDigest() {
			continue
		}
		parts = append(parts, reference.path, reference.digest(hasher))
	}
	if generator != "" {
		parts = append(parts, "generator", generator)
	}
	return hasher.Combine(parts...), nil
}

// digest identifies what was loaded.
func (f found) digest(hasher digest.Hasher) string {
	switch reference := f.pointer.(type) {
	case loadable:
		if reference.loaded() == nil {
			return ""
		}
		return hasher.Combine(reference.loaded().parts()...)
	case interface{ Digest() string }:
		return reference.Digest()
	}
	return ""
}

func isNoisy(annotation string) bool {
	for _, noisy := range noisyAnnotations {
		if annotation == noisy {
			return true
		}
	}
	return false
}
