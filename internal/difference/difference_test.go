// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package difference_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/test/check"
)

func object(name string, data any) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Thing", "metadata": map[string]any{"namespace": "shop", "name": name}, "data": data,
	}}
}

func TestBetween(t *testing.T) {
	type list = []client.Object
	type m = map[string]any
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, place := range difference.Between(test.first, test.second, 3) {
				got = append(got, place.String())
			}
			check.Equal(t, test.want, got)
		})
	}
}

func TestFields(t *testing.T) {
	type m = map[string]any
	containers := func(images ...string) m {
		var list []any
		for i := 0; i < len(images); i += 2 {
			list = append(list, m{"name": images[i], "image": images[i+1]})
		}
		return m{"spec": m{"template": m{"spec": m{"containers": list}}}}
	}
	secret := func(value string) m {
		return m{
			"apiVersion": "v1", "kind": "Secret", "data": m{"password": value}, "type": value,
			"metadata": m{"annotations": m{"copy": value}, "labels": m{"of": value}},
		}
	}
	applied := func(value string) m {
		return m{"metadata": m{"annotations": m{"kubectl.kubernetes.io/last-applied-configuration": value}}}
	}
	for _, test := range []struct {
		name          string
		before, after m
		want          []string
	}{
		{"nothing", nil, nil, nil},
		{"the same", m{"a": int64(1), "b": []any{"x"}}, m{"a": float64(1), "b": []any{"x"}}, nil},
		{"a field", m{"a": "1"}, m{"a": "2"}, []string{"a: 1 -> 2"}},
		{"a field that is new, and one that is gone", m{"a": m{"x": true}}, m{"b": int64(3)}, []string{"a.x: true -> ", "b:  -> 3"}},
		{"empty and missing", m{"a": m{}, "b": []any{}}, m{"c": m{"d": nil}}, nil},
		{"a key with dots", m{"data": m{"a.b/c": "1"}}, m{"data": m{"a.b/c": "2"}}, []string{"data[a.b/c]: 1 -> 2"}},
		{"a named element", containers("api", "a:1", "log", "l:1"), containers("log", "l:1", "api", "a:2"),
			[]string{"spec.template.spec.containers[name=api].image: a:1 -> a:2"}},
		{"a named element that is gone", containers("api", "a:1", "log", "l:1"), containers("api", "a:1"),
			[]string{"spec.template.spec.containers[name=log].image: l:1 -> ", "spec.template.spec.containers[name=log].name: log -> "}},
		{"elements without names", m{"a": []any{"x", "y"}}, m{"a": []any{"x", "z"}}, []string{"a[1]: y -> z"}},
		{"a longer list", m{"a": []any{"x"}}, m{"a": []any{"x", "z"}}, []string{`a: ["x"] -> ["x","z"]`}},
		{"another kind of value", m{"a": []any{"x"}}, m{"a": "x"}, []string{`a: ["x"] -> x`}},
		{"a long value", m{"a": strings.Repeat("ü", 200)}, m{"a": ""}, []string{"a: " + strings.Repeat("ü", 98) + "?... -> "}},
		{"what the server maintains", m{"status": "1", "metadata": m{"uid": "1", "generation": int64(1), "name": "a"}},
			m{"status": "2", "metadata": m{"uid": "2", "resourceVersion": "2", "name": "a", "managedFields": []any{"x"}}}, nil},
		{"a Secret", secret("canary-1"), secret("canary-2"), []string{"data.password: *** -> ***", "metadata.annotations.copy: *** -> ***",
			"metadata.labels.of: canary-1 -> canary-2", "type: canary-1 -> canary-2"}},
		{"a Secret that is new", nil, m{"apiVersion": "v1", "kind": "Secret", "stringData": m{"a": "canary"}},
			[]string{"apiVersion:  -> v1", "kind:  -> Secret", "stringData.a:  -> ***"}},
		{"a copy of the object", applied("1"), applied("2"), []string{"metadata.annotations[kubectl.kubernetes.io/last-applied-configuration]: *** -> ***"}},
		{"more than the limit", m{}, m{"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "f": "1"}, []string{"a:  -> 1", "b:  -> 1", "c:  -> 1", "d:  -> 1", "2 more"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			changes, more := difference.Fields(test.before, test.after, 4)
			var got []string
			for _, change := range changes {
				got = append(got, change.Path+": "+change.Old+" -> "+change.New)
			}
			if more > 0 {
				got = append(got, string(rune('0'+more))+" more")
			}
			check.Equal(t, test.want, got)
		})
	}
}
