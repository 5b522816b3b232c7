// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// manifest is a ConfigMap with the result of the action as its only value.
func manifest(action string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: |-\n    " + action + "\n"
}

// evaluate renders an action and returns the text.
func evaluate(ctx context.Context, action string, values map[string]any, options gotemplate.Options) (string, error) {
	g, err := gotemplate.New(folder(map[string]string{"t/a.yaml": manifest(action)}), "t", options)
	if err != nil {
		return "", err
	}
	objects, err := manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(values))
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(objects[0].(*unstructured.Unstructured).Object, "data", "v")
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

// contentOf returns the data of a ConfigMap.
func contentOf(object any) map[string]any {
	data, _, _ := unstructured.NestedMap(object.(*unstructured.Unstructured).Object, "data")
	return data
}
