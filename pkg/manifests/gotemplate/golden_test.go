// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"os"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
)

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

func shop(t *testing.T) manifests.Generator {
	t.Helper()
	g, err := gotemplate.New(os.DirFS("testdata"), "shop", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func upgrade(ctx context.Context) context.Context {
	return manifests.Context{ReconcilerName: "shop.example.com", Revision: 2, Upgrade: true}.In(ctx)
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
			c := manifeststest.Case{Generator: shop(t), Context: test.ctx, Namespace: "prod", Name: "app", Parameters: test.values}
			c.Golden(t, "testdata/"+test.name+".golden")
			c.Deterministic(t)
		})
	}
}
