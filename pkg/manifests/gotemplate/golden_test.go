// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"flag"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

var update = flag.Bool("update", false, "write the golden files anew")

var shopValues = types.UnstructurableMap{
	"image":  map[string]any{"repository": "registry.example.com/shop", "tag": 1.5},
	"labels": map[string]any{"team": "b", "cost-center": "a"},
	"config": map[string]any{"url": "https://{{ .Release.Name }}.{{ .Namespace }}.svc", "size": int64(1000000)},
	"parts": map[string]any{
		"web":    map[string]any{"replicas": int64(2), "ports": []any{int64(80), int64(443)}},
		"worker": map[string]any{},
	},
	"limits": []any{map[string]any{"type": "Pod", "max": map[string]any{"cpu": "2"}}},
}

func shop(t *testing.T) *gotemplate.Generator {
	t.Helper()
	g, err := gotemplate.New(os.DirFS("testdata"), "shop", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func upgrade(ctx context.Context) context.Context {
	return manifests.WithReconcilerName(manifests.WithComponentRevision(ctx, 2), "shop.example.com")
}

func asYAML(t *testing.T, objects []client.Object) string {
	t.Helper()
	var all []string
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(text))
	}
	return strings.Join(all, "---\n")
}

func TestGolden(t *testing.T) {
	tests := []struct {
		name   string
		ctx    context.Context
		values types.Unstructurable
	}{
		{"install", t.Context(), shopValues},
		{"upgrade", upgrade(t.Context()), shopValues},
		{"empty", t.Context(), types.UnstructurableMap{}},
		{"nil", t.Context(), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			objects, err := manifests.Generate(test.ctx, shop(t), "prod", "app", test.values)
			if err != nil {
				t.Fatal(err)
			}
			got, file := asYAML(t, objects), "testdata/"+test.name+".golden"
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheSameInputGivesTheSameOutput(t *testing.T) {
	g := shop(t)
	ctx := upgrade(t.Context())
	outputs := make([]string, 20)
	var group sync.WaitGroup
	for i := range outputs {
		group.Go(func() {
			objects, err := manifests.Generate(ctx, g, "prod", "app", shopValues)
			if err != nil {
				t.Error(err)
				return
			}
			outputs[i] = asYAML(t, objects)
		})
	}
	group.Wait()
	for i, output := range outputs {
		if diff := cmp.Diff(outputs[0], output); diff != "" {
			t.Fatalf("rendering %d differs: -first +this:\n%s", i, diff)
		}
	}
}
