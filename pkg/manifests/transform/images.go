// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"maps"
	"regexp"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// replaceImage replaces the image in a field.
func replaceImage(holder map[string]any, field string, images []v1alpha1.Image) {
	for _, image := range images {
		if current, ok := holder[field].(string); ok {
			if name, tag, digest := splitImage(current); name == image.Name {
				holder[field] = newImage(name, tag, digest, image)
			}
		}
	}
}

func newImage(name, tag, digest string, image v1alpha1.Image) string {
	if image.NewName != "" {
		name = image.NewName
	}
	if image.NewTag != "" || image.Digest != "" {
		tag, digest = image.NewTag, image.Digest
	}
	if tag != "" {
		name += ":" + tag
	}
	if digest != "" {
		name += "@" + digest
	}
	return name
}

// imagePattern splits a name, in which the first part may have a port, from tag and digest.
var imagePattern = regexp.MustCompile(`^(.+?)(?::([^:/@]+))?(?:@(.+))?$`)

func splitImage(image string) (name, tag, digest string) {
	if match := imagePattern.FindStringSubmatch(strings.TrimSpace(image)); match != nil {
		return match[1], match[2], match[3]
	}
	return image, "", ""
}

// Labels returns a transformer that sets labels on all objects. It does not touch
// selectors and templates of pods.
func Labels(labels map[string]string) manifests.ObjectTransformer {
	return metadata("labels", labels, client.Object.GetLabels, client.Object.SetLabels)
}

// Annotations returns a transformer that sets annotations on all objects.
func Annotations(annotations map[string]string) manifests.ObjectTransformer {
	return metadata("annotations", annotations, client.Object.GetAnnotations, client.Object.SetAnnotations)
}

func metadata(what string, values map[string]string, get func(client.Object) map[string]string, set func(client.Object, map[string]string)) manifests.ObjectTransformer {
	values = maps.Clone(values)
	return objectFunc{digest.OfValues(what, values), func(_, _ string, objects []client.Object) ([]client.Object, error) {
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
	}}
}

type sum = digest.Sum

type objectFunc struct {
	sum
	manifests.ObjectTransformerFunc
}

type parameterFunc struct {
	sum
	manifests.ParameterTransformerFunc
}
