// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// many returns an input of n objects in a namespace of their own, every tenth
// with a dependency on the one before.
func many(n int) Input {
	objects := []client.Object{&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"},
	}}}
	for i := range n - 1 {
		annotations := map[string]any{name + "/apply-order": "1"}
		if i%10 == 9 {
			annotations[name+"/depends-on"] = fmt.Sprintf("ConfigMap/c%d", i-1)
		}
		data := map[string]any{}
		for j := range 10 {
			data[fmt.Sprintf("key%d", j)] = fmt.Sprintf("value %d of %d", j, i)
		}
		objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{"name": fmt.Sprintf("c%d", i), "labels": map[string]any{"app": "shop"}, "annotations": annotations},
			"data":     data,
		}})
	}
	return input(objects...)
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			in := many(n)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Build(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
