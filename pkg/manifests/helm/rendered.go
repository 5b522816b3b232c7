// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
)

const (
	// maxTexts and maxTextBytes limit the texts whose objects a generator keeps.
	maxTexts     = 2000
	maxTextBytes = 32 << 20
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

// read returns the objects of what the templates gave, in the order of Helm. Each text is
// parsed once, as long as it is kept; components of one chart have most texts in common.
// All mistakes are reported.
func (g *Generator) read(ctx context.Context, outputs map[string]string) (rendered, error) {
	var found []manifest
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		text := outputs[name]
		if strings.HasSuffix(name, notes) || strings.HasPrefix(path.Base(name), "_") || strings.TrimSpace(text) == "" {
			continue
		}
		parsed, err := g.parsed(name, text, manifestsIn)
		found, errs = append(found, parsed...), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return rendered{}, err
	}
	slices.SortStableFunc(found, byKind)
	var result rendered
	for _, m := range found {
		objects := copies(ctx, m)
		if m.hook != nil {
			result.hooks = append(result.hooks, hook{Hook: m.hook, objects: objects})
			continue
		}
		for _, object := range objects {
			result.manifests = append(result.manifests, templated{Unstructured: object, file: m.file})
		}
	}
	return result, nil
}

// parsed returns what a file holds. It must not be changed.
func (g *Generator) parsed(name, text string, parse func(name, text string) ([]manifest, error)) ([]manifest, error) {
	key := cache.KeyOf(map[string]string{name: text})
	found, ok := g.texts.Get(key)
	if ok {
		return found, nil
	}
	found, err := parse(name, text)
	if err == nil {
		g.texts.Put(key, found, int64(len(text))+memoryOf(found))
	}
	return found, err
}

// memoryOf estimates what objects take in memory. With aliases it is much more than their text.
func memoryOf(parsed []manifest) (bytes int64) {
	const perByte = 4 // of JSON: maps and interfaces take several times their text
	for _, m := range parsed {
		for _, object := range m.objects {
			bytes += perByte * int64(jsonsize.Of(object.Object, math.MaxInt32))
		}
	}
	return bytes
}

// copies returns objects that may be changed, and says where they come from.
func copies(ctx context.Context, m manifest) []*unstructured.Unstructured {
	copied := make([]*unstructured.Unstructured, len(m.objects))
	for i, object := range m.objects {
		copied[i] = object.DeepCopy()
		manifests.NoteOrigin(ctx, copied[i], m.file)
	}
	return copied
}

// readCRDs reads the folders crds of the chart and its sub-charts.
func (g *Generator) readCRDs(ctx context.Context, c *chart.Chart) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	var errs []error
	for _, crd := range c.CRDObjects() {
		found, err := g.parsed(crd.Filename, string(crd.File.Data), crdsIn)
		errs = append(errs, err)
		for _, m := range found {
			all = append(all, copies(ctx, m)...)
		}
	}
	return all, errors.Join(errs...)
}

func crdsIn(name, text string) ([]manifest, error) {
	objects, err := manifests.Decode(name, []byte(text))
	return []manifest{{objects: manifests.WithoutLists(objects), file: name}}, err
}
