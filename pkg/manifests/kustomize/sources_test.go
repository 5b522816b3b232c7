// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
)

func TestObjectsAreKnownByTheirTemplates(t *testing.T) {
	files := map[string]string{
		"kustomization.yaml": "resources: [a.yaml, b.yaml]\nnamePrefix: x-\npatches: [{path: p.yaml}]\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n",
		"a.yaml":             configMap("a") + "---\n" + configMap("ab"), "b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "p.yaml": configMap("ab"),
	}
	const folder = "kustomization in folder ."
	for _, test := range []struct {
		templates *kustomize.Templates
		want      map[string]string
	}{
		{nil, map[string]string{"ConfigMap x-a": folder, "ConfigMap x-ab": folder, "Secret x-a": folder, "ConfigMap x-made-4h2mbtbbt6": folder}},
		{&kustomize.Templates{}, map[string]string{
			"ConfigMap x-a": "a.yaml", "ConfigMap x-ab": "a.yaml, p.yaml", "Secret x-a": "b.yaml", "ConfigMap x-made-4h2mbtbbt6": folder,
		}},
	} {
		ctx, origins := renders.WithOrigins(t.Context())
		objects, err := generate(ctx, files, ".", kustomize.Options{Templates: test.templates}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, object := range objects {
			got[object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName()] = origins.Of(object)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}
