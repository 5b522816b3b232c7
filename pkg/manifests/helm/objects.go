// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// notes are what Helm shows after an installation. They are rendered, because
// charts check their values there, and then thrown away.
const notes = "NOTES.txt"

// rendered are the objects of a chart, in the order in which Helm prints them.
type rendered struct {
	crds      []*unstructured.Unstructured
	manifests []templated
	hooks     []hook
}

// templated is an object with the template that it comes from.
type templated struct {
	*unstructured.Unstructured
	file string
}

// hook is an object with its place in the life of a release.
type hook struct {
	*release.Hook
	objects []*unstructured.Unstructured
}

// objectsOf reads the outputs of the templates. All mistakes are reported.
func objectsOf(ctx context.Context, outputs map[string]string) (rendered, error) {
	for name, text := range outputs {
		if strings.HasSuffix(name, notes) {
			delete(outputs, name)
		} else {
			outputs[name] = withoutUnknownHooks(text)
		}
	}
	hooks, generic, err := releaseutil.SortManifests(outputs, nil, releaseutil.InstallOrder)
	if err != nil {
		return rendered{}, err
	}
	var result rendered
	var errs []error
	for _, manifest := range generic {
		objects, err := decode(ctx, manifest.Name, manifest.Content)
		for _, object := range objects {
			result.manifests = append(result.manifests, templated{Unstructured: object, file: manifest.Name})
		}
		errs = append(errs, err)
	}
	for _, found := range hooks {
		objects, err := decode(ctx, found.Path, found.Manifest)
		result.hooks = append(result.hooks, hook{Hook: found, objects: objects})
		errs = append(errs, err)
	}
	return result, errors.Join(errs...)
}

// crdsOf reads the folders crds of the chart and its sub-charts.
func crdsOf(ctx context.Context, c *chart.Chart) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	var errs []error
	for _, crd := range c.CRDObjects() {
		objects, err := manifests.Decode(crd.Filename, crd.File.Data)
		noteOrigin(ctx, objects, crd.Filename)
		all = append(all, objects...)
		errs = append(errs, err)
	}
	return all, errors.Join(errs...)
}

// decode reads one document. Helm accepts keys that are set twice, and takes the
// last one.
func decode(ctx context.Context, name, text string) ([]*unstructured.Unstructured, error) {
	// Without it a block of text at the end would lose its last line end.
	text += "\n"
	objects, err := manifests.Decode(name+" (rendered)", []byte(text))
	if err != nil {
		data, lenientErr := yaml.YAMLToJSON([]byte(text))
		if lenientErr != nil {
			return nil, err
		}
		if objects, lenientErr = manifests.Decode(name, data); lenientErr != nil {
			return nil, fmt.Errorf("%w", err)
		}
	}
	noteOrigin(ctx, objects, name)
	return objects, nil
}

func noteOrigin(ctx context.Context, objects []*unstructured.Unstructured, name string) {
	for _, object := range objects {
		manifests.NoteOrigin(ctx, object, name)
	}
}
