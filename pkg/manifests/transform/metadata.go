// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// Labels returns a transformer that sets labels on all objects. It does not touch
// selectors and templates of pods.
func Labels(labels map[string]string) manifests.ObjectTransformer {
	return metadata(labels, client.Object.GetLabels, client.Object.SetLabels)
}

// Annotations returns a transformer that sets annotations on all objects.
func Annotations(annotations map[string]string) manifests.ObjectTransformer {
	return metadata(annotations, client.Object.GetAnnotations, client.Object.SetAnnotations)
}

func metadata(values map[string]string, get func(client.Object) map[string]string, set func(client.Object, map[string]string)) manifests.ObjectTransformer {
	values = maps.Clone(values)
	return manifests.ObjectTransformerFunc(func(_, _ string, objects []client.Object) ([]client.Object, error) {
		for _, object := range objects {
			merged := maps.Clone(get(object))
			if merged == nil {
				merged = map[string]string{}
			}
			maps.Copy(merged, values)
			if len(merged) > 0 {
				set(object, merged)
			}
		}
		return objects, nil
	})
}
