// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"github.com/corbel-run/corbel/internal/digest"
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
func digestOf(c Component) (string, error) {
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
	return digest.Combine(strconv.FormatInt(c.GetGeneration(), 10), string(annotationsJSON), string(specJSON)), nil
}

func isNoisy(annotation string) bool {
	for _, noisy := range noisyAnnotations {
		if annotation == noisy {
			return true
		}
	}
	return false
}
