// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"errors"
	"slices"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/kept"
)

const (
	// maxResults and maxResultBytes limit the texts whose objects a generator keeps.
	maxResults     = 16
	maxResultBytes = 16 << 20
	// maxCRDs limits the files of crds whose objects it keeps.
	maxCRDs = 1000
)

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

// read returns the objects of the manifests, which are read once as long as the
// templates give the same.
func (g *Generator) read(ctx context.Context, outputs map[string]string) (rendered, error) {
	if err := manifestsIn(outputs); err != nil {
		return rendered{}, err
	}
	key, size := kept.KeyOf(outputs), kept.SizeOf(outputs)
	result, ok := g.results.Get(key)
	if !ok {
		var err error
		if result, err = objectsOf(outputs); err != nil {
			return rendered{}, err
		}
		g.results.Put(key, result, size)
	}
	return result.copy(ctx), nil
}

// copy returns a copy that may be changed, and says where its objects come from.
func (r rendered) copy(ctx context.Context) rendered {
	r.manifests, r.hooks = slices.Clone(r.manifests), slices.Clone(r.hooks)
	for i, object := range r.manifests {
		r.manifests[i].Unstructured = object.DeepCopy()
		manifests.NoteOrigin(ctx, r.manifests[i].Unstructured, object.file)
	}
	for i, found := range r.hooks {
		copied := *found.Hook
		copied.Events, copied.DeletePolicies = slices.Clone(copied.Events), slices.Clone(copied.DeletePolicies)
		r.hooks[i] = hook{Hook: &copied, objects: copies(ctx, found.objects, found.Path)}
	}
	return r
}

func copies(ctx context.Context, objects []*unstructured.Unstructured, origin string) []*unstructured.Unstructured {
	copied := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		copied[i] = object.DeepCopy()
		manifests.NoteOrigin(ctx, copied[i], origin)
	}
	return copied
}

// readCRDs reads the folders crds of the chart and its sub-charts, each file once.
func (g *Generator) readCRDs(ctx context.Context, c *chart.Chart) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	var errs []error
	for _, crd := range c.CRDObjects() {
		key := kept.KeyOf(map[string][]byte{crd.Filename: crd.File.Data})
		objects, ok := g.crds.Get(key)
		if !ok {
			var err error
			if objects, err = manifests.Decode(crd.Filename, crd.File.Data); err != nil {
				errs = append(errs, err)
				continue
			}
			g.crds.Put(key, objects, int64(len(crd.File.Data)))
		}
		all = append(all, copies(ctx, objects, crd.Filename)...)
	}
	return all, errors.Join(errs...)
}
