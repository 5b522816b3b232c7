// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
)

// notes are what Helm shows after an installation. They are rendered, because
// charts check their values there, and then thrown away.
const notes = "NOTES.txt"

// manifestsIn takes out of the outputs of the templates what is no manifest. Texts whose
// aliases expand to too much are refused before Helm's parser expands them.
func manifestsIn(outputs map[string]string) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		if strings.HasSuffix(name, notes) {
			delete(outputs, name)
			continue
		}
		if err := document.CheckAliases([]byte(outputs[name])); err != nil {
			errs = append(errs, fmt.Errorf("%s (rendered): %w", name, err))
			continue
		}
		var err error
		outputs[name], err = withoutFormerHooks(name, outputs[name])
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// objectsOf reads manifests. All mistakes are reported.
func objectsOf(outputs map[string]string) (rendered, error) {
	hooks, generic, err := releaseutil.SortManifests(outputs, nil, releaseutil.InstallOrder)
	if err != nil {
		return rendered{}, err
	}
	var result rendered
	var errs []error
	for _, manifest := range generic {
		objects, err := decode(manifest.Name, manifest.Content)
		for _, object := range objects {
			result.manifests = append(result.manifests, templated{Unstructured: object, file: manifest.Name})
		}
		errs = append(errs, err)
	}
	for _, found := range hooks {
		objects, err := decode(found.Path, found.Manifest)
		result.hooks = append(result.hooks, hook{Hook: found, objects: objects})
		errs = append(errs, err)
	}
	return result, errors.Join(errs...)
}

// decode reads one document. Helm accepts keys that are set twice, and takes the
// last one.
func decode(name, text string) ([]*unstructured.Unstructured, error) {
	// Without it a block of text at the end would lose its last line end.
	text += "\n"
	objects, err := manifests.Decode(name+" (rendered)", []byte(text))
	if err != nil && !errors.Is(err, document.ErrNumber) && !errors.Is(err, document.ErrLimit) {
		data, lenientErr := yaml.YAMLToJSON([]byte(text))
		if lenientErr != nil {
			return nil, err
		}
		if objects, lenientErr = manifests.Decode(name, data); lenientErr != nil {
			return nil, fmt.Errorf("%w", err)
		}
		err = nil
	}
	return objects, err
}
