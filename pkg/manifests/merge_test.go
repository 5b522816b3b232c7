// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/manifests"
)

type m = map[string]any

func TestMergeMaps(t *testing.T) {
	tests := []struct {
		name       string
		x, y, want m
	}{
		{"nothing", nil, nil, m{}},
		{"only the first", m{"a": 1}, nil, m{"a": 1}},
		{"only the second", nil, m{"a": 1}, m{"a": 1}},
		{"different keys", m{"a": 1}, m{"b": 2}, m{"a": 1, "b": 2}},
		{"the second wins", m{"a": 1}, m{"a": "x"}, m{"a": "x"}},
		{"maps are merged", m{"a": m{"b": m{"c": 1}, "d": 1}}, m{"a": m{"b": m{"e": 2}}}, m{"a": m{"b": m{"c": 1, "e": 2}, "d": 1}}},
		{"a map replaces a scalar", m{"a": 1}, m{"a": m{"b": 1}}, m{"a": m{"b": 1}}},
		{"a scalar replaces a map", m{"a": m{"b": 1}}, m{"a": 1}, m{"a": 1}},
		{"null replaces a map", m{"a": m{"b": 1}}, m{"a": nil}, m{"a": nil}},
		{"lists are not merged", m{"a": []any{1, 2}}, m{"a": []any{3}}, m{"a": []any{3}}},
		{"an empty map changes nothing", m{"a": m{"b": 1}}, m{"a": m{}}, m{"a": m{"b": 1}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := manifests.MergeMaps(test.x, nil)
			if diff := cmp.Diff(test.want, manifests.MergeMaps(test.x, test.y)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, manifests.MergeMaps(test.x, nil)); diff != "" {
				t.Errorf("the first map was changed:\n%s", diff)
			}
		})
	}
}

func TestMergeMapsSharesNothing(t *testing.T) {
	x, y := m{"x": m{"a": []any{m{"b": 1}}}}, m{"y": m{"a": []any{m{"b": 1}}}}
	merged := manifests.MergeMaps(x, y)
	for _, key := range []string{"x", "y"} {
		merged[key].(m)["a"].([]any)[0].(m)["b"] = 2
	}
	if diff := cmp.Diff([]m{{"x": m{"a": []any{m{"b": 1}}}}, {"y": m{"a": []any{m{"b": 1}}}}}, []m{x, y}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMergeMapIntoChangesTheFirst(t *testing.T) {
	x, y := m{"a": m{"b": 1}}, m{"a": m{"c": m{"d": 1}}}
	got := manifests.MergeMapInto(x, y)
	got["z"] = true
	y["a"].(m)["c"].(m)["d"] = 2
	if diff := cmp.Diff(m{"a": m{"b": 1, "c": m{"d": 1}}, "z": true}, x); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
