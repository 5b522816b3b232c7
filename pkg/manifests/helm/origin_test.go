// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

func TestObjectsAreKnownByTheirTemplates(t *testing.T) {
	fsys := folder(map[string]string{
		"web/crds/c.yaml":      "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: c\n",
		"web/templates/a.yaml": manifest("x"), "web/templates/hook.yaml": hook("Job", "j", "pre-install", ""),
		"web/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "web/charts/db/templates/b.yaml": manifest("y"),
	})
	ctx, origins := renders.WithOrigins(reconciling(t.Context(), 1))
	objects, err := render(ctx, fsys, nil, helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, object := range objects {
		got = append(got, origins.Of(object))
	}
	want := []string{"web/crds/c.yaml", "web/charts/db/templates/b.yaml", "web/templates/a.yaml", "web/templates/hook.yaml"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
