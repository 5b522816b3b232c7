// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// BenchmarkRender renders 1,000 objects of an input that was not rendered before, so that
// they are rendered twice and compared.
func BenchmarkRender(b *testing.B) {
	h, _ := testHandler(b, &fakeEngine{})
	h.revisions.Renderer.Generator = manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		objects := make([]client.Object, 1000)
		for i := range objects {
			objects[i] = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("a", i)},
				"data": map[string]any{"key": "value"},
			}}
		}
		return objects, nil
	})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := render(manifests.Context{Digest: fmt.Sprint(i)}.In(b.Context()), h); err != nil {
			b.Fatal(err)
		}
	}
}
