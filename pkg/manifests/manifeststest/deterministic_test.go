// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestDeterministicFindsWhatIsNot(t *testing.T) {
	var calls atomic.Int64
	kept, data := configMap("kept", ""), map[string]any{"list": []any{map[string]any{"x": "y"}}}
	tests := []struct {
		name   string
		render func(parameters map[string]any) []client.Object
		want   []string
	}{
		{"always the same", func(map[string]any) []client.Object { return []client.Object{configMap("a", "1")} }, nil},
		{"another value every time", func(map[string]any) []client.Object {
			return []client.Object{configMap("a", "1"), configMap("b", fmt.Sprint(calls.Add(1)))}
		}, []string{"ConfigMap b differs in data.key"}},
		{"another value at last", func(map[string]any) []client.Object {
			return []client.Object{configMap("a", fmt.Sprint(calls.Add(1)/24))}
		}, []string{"at the same time as others", "ConfigMap a differs in data.key"}},
		{"another order", func(map[string]any) []client.Object {
			objects := []client.Object{configMap("a", ""), configMap("b", "")}
			i := calls.Add(1) % 2
			return []client.Object{objects[i], objects[1-i]}
		}, []string{"in another order"}},
		{"one more every time", func(map[string]any) []client.Object {
			return slices.Repeat([]client.Object{configMap("a", "")}, int(calls.Add(1)))
		}, []string{"ConfigMap a is only in one of them"}},
		{"the same object again", func(map[string]any) []client.Object { return []client.Object{kept} },
			[]string{"after a caller changed the objects that it got", "ConfigMap kept-changed is only in one of them"}},
		{"the same data again", func(map[string]any) []client.Object {
			return []client.Object{&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data,
			}}}
		}, []string{"after a caller changed the objects that it got", "ConfigMap a differs in data.list"}},
		{"errors later", func(map[string]any) []client.Object {
			if calls.Add(1) > 3 {
				panic("no")
			}
			return nil
		}, []string{"a later rendering fails, the first one did not: panicked: no"}},
		{"changed parameters", func(parameters map[string]any) []client.Object {
			delete(parameters, "list")
			return nil
		}, []string{"changes its parameters"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			calls.Store(0)
			c := manifeststest.Case{Generator: generate(test.render), Parameters: types.UnstructurableMap{"list": []any{"a"}}}
			check(t, func(t testing.TB) { c.Deterministic(t) }).wants(t, test.want...)
		})
	}
}
