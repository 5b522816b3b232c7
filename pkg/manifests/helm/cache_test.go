// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

func small(text string) fstest.MapFS {
	return fstest.MapFS{
		"web/Chart.yaml":         {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"web/templates/a.yaml":   {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {size: '{{ .Values.size }}'}\ndata: {text: " + text + "}\n")},
		"web/templates/job.yaml": {Data: []byte("apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: job\n  annotations: {helm.sh/hook: pre-install}\n")},
		"web/crds/c.yaml":        {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n")},
	}
}

func generated(t *testing.T, g manifests.Generator, size int) ([]client.Object, map[string]string) {
	t.Helper()
	ctx, origins := renders.WithOrigins(manifests.Context{ReconcilerName: "app.example.com"}.In(t.Context()))
	objects := check.Must(manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap{"size": size}))(t)
	from := map[string]string{}
	for _, object := range objects {
		from[object.GetName()] = origins.Of(object)
	}
	return objects, from
}

func TestATextIsParsedOnceForAllRenderings(t *testing.T) {
	g := check.Must(New(small("x"), "web", Options{}))(t)
	first, from := generated(t, g, 1)
	want, _ := generated(t, g, 1)
	for _, object := range first {
		object.SetLabels(map[string]string{"changed": "by the caller"})
		object.SetAnnotations(nil)
	}
	again, fromAgain := generated(t, g, 1)
	if diff := cmp.Diff(want, again); diff != "" {
		t.Errorf("what was kept was changed, -want +got:\n%s", diff)
	}
	check.Equal(t, map[string]string{"a": "web/templates/a.yaml", "job": "web/templates/job.yaml", "c": "web/crds/c.yaml"}, from)
	if diff := cmp.Diff(from, fromAgain); diff != "" {
		t.Errorf("-first +again:\n%s", diff)
	}
	// A rendering that has this name did not parse the text again.
	file := "web/templates/job.yaml"
	known, ok := g.(*generator).texts.Get(cache.KeyOf(map[string]string{file: string(small("")[file].Data)}))
	if !ok || len(known) != 1 {
		t.Fatalf("nothing was kept: %v", known)
	}
	known[0].objects[0].SetName("kept")
	if _, from := generated(t, g, 2); from["kept"] != file {
		t.Errorf("got %v, the text was parsed again", from)
	}
	if _, from := generated(t, g, 2); from["a"] == "" {
		t.Errorf("got %v for other values", from)
	}
}

func TestChartsWithTheSameFilesAreParsedOnce(t *testing.T) {
	load := func(fsys fstest.MapFS) loaded {
		t.Helper()
		g := check.Must(New(fsys, "web", Options{}))(t)
		generated(t, g, 1)
		return g.(*generator).loaded
	}
	one := load(small("one"))
	if again := load(small("one")); again.chart != one.chart || again.sets != one.sets || len(one.sets.byKey) != 1 {
		t.Error("the same files were parsed again")
	}
	if other := load(small("other")); other.chart == one.chart {
		t.Error("other files are another chart")
	}
	renamed := small("one")
	renamed["web/templates/b.yaml"] = renamed["web/templates/a.yaml"]
	delete(renamed, "web/templates/a.yaml")
	if other := load(renamed); other.chart == one.chart {
		t.Error("files of other names are another chart")
	}
}
