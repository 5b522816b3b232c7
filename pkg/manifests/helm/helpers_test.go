// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

const chartFile = "apiVersion: v2\nname: web\nversion: 1.2.3\n"

// folder is a file system; a chart without a Chart.yaml gets one.
func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"web/Chart.yaml": {Data: []byte(chartFile)}}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// manifest is a ConfigMap with the result of the action as its only value.
func manifest(action string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: |-\n    " + action + "\n"
}

func render(ctx context.Context, fsys fstest.MapFS, values map[string]any, options helm.Options) ([]*unstructured.Unstructured, error) {
	g, err := helm.New(fsys, "web", options)
	if err != nil {
		return nil, err
	}
	objects, err := manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(values))
	if err != nil {
		return nil, err
	}
	result := make([]*unstructured.Unstructured, len(objects))
	for i := range objects {
		result[i] = objects[i].(*unstructured.Unstructured)
	}
	return result, nil
}

// evaluate renders an action and returns the text.
func evaluate(ctx context.Context, action string, values map[string]any, options helm.Options) (string, error) {
	objects, err := render(ctx, folder(map[string]string{"web/templates/a.yaml": manifest(action)}), values, options)
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(objects[0].Object, "data", "v")
	return text, err
}

func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("got the error %v, want it to contain %q", err, part)
		}
	}
}

func reconciling(ctx context.Context, revision int64) context.Context {
	return manifests.Context{ReconcilerName: "app.example.com", Revision: revision, Upgrade: revision > 1}.In(ctx)
}

// data returns the only value of a ConfigMap.
func data(t *testing.T, object any) string {
	t.Helper()
	text, found, err := unstructured.NestedString(object.(*unstructured.Unstructured).Object, "data", "v")
	if err != nil || !found {
		t.Fatalf("got %v, %v", found, err)
	}
	return text
}
