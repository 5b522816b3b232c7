// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package difference_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/difference"
)

func object(name string, data any) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Thing", "metadata": map[string]any{"namespace": "shop", "name": name}, "data": data,
	}}
}

func TestBetween(t *testing.T) {
	type list = []client.Object
	type m = map[string]any
	tests := []struct {
		name          string
		first, second list
		want          []string
	}{
		{"nothing", nil, nil, nil},
		{"the same", list{object("a", m{"x": int64(1)})}, list{object("a", m{"x": int64(1)})}, nil},
		{"another order", list{object("a", 1), object("b", nil)}, list{object("b", nil), object("a", 1)}, nil},
		{"a field", list{object("a", m{"x": "1", "y": "1"})}, list{object("a", m{"x": "1", "y": "2"})}, []string{"Thing shop/a differs in data.y"}},
		{"a key with a dot", list{object("a", m{"x.y": "1"})}, list{object("a", m{"x.y": "2"})}, []string{`Thing shop/a differs in data["x.y"]`}},
		{"numbers close together", list{object("a", int64(9007199254740993))}, list{object("a", int64(9007199254740992))}, []string{"Thing shop/a differs in data"}},
		{"in a list", list{object("a", []any{"1", m{"x": true}})}, list{object("a", []any{"1", m{"x": false}})}, []string{"Thing shop/a differs in data[1].x"}},
		{"a longer list", list{object("a", []any{"1"})}, list{object("a", []any{"1", "2"})}, []string{"Thing shop/a differs in data"}},
		{"another kind of value", list{object("a", []any{})}, list{object("a", m{})}, []string{"Thing shop/a differs in data"}},
		{"fields in one", list{object("a", m{"x": nil})}, list{object("a", m{"z": "1"})}, []string{"Thing shop/a differs in data.x", "Thing shop/a differs in data.z"}},
		{"objects in one", list{object("a", 1), object("b", 1)}, list{object("c", 1), object("a", 1)}, []string{"Thing shop/b is only in one of them", "Thing shop/c is only in one of them"}},
		{"twice the same name", list{object("a", "1"), object("a", "2")}, list{object("a", "1"), object("a", "3"), object("a", "4")},
			[]string{"Thing shop/a differs in data", "Thing shop/a is only in one of them"}},
		{"no more than the limit", list{object("a", m{"1": 1, "2": 1, "3": 1, "4": 1})}, list{object("a", m{})},
			[]string{`Thing shop/a differs in data["1"]`, `Thing shop/a differs in data["2"]`, `Thing shop/a differs in data["3"]`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, place := range difference.Between(test.first, test.second, 3) {
				got = append(got, place.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
