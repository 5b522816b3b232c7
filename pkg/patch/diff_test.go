// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/test/check"
)

type m = map[string]any

// applyMerge is the algorithm of RFC 7396.
func applyMerge(target any, patch any) any {
	changes, ok := patch.(m)
	if !ok {
		return patch
	}
	result := m{}
	if old, ok := target.(m); ok {
		for k, v := range old {
			result[k] = v
		}
	}
	for k, v := range changes {
		if v == nil {
			delete(result, k)
		} else {
			result[k] = applyMerge(result[k], v)
		}
	}
	return result
}

// randomMap is small, so that two of them have much in common.
func randomMap(r *rand.Rand, depth int) m {
	result := m{}
	for range r.IntN(4) {
		key := strconv.Itoa(r.IntN(4))
		switch r.IntN(4) {
		case 0:
			result[key] = int64(r.IntN(2))
		case 1:
			result[key] = []any{int64(r.IntN(2))}
		default:
			if depth > 0 {
				result[key] = randomMap(r, depth-1)
			}
		}
	}
	return result
}

func TestDiffLeadsFromBeforeToAfter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		before, after := randomMap(r, 3), randomMap(r, 3)
		patch := diff(before, after)
		if d := cmp.Diff(any(after), applyMerge(before, patch)); d != "" {
			t.Fatalf("before %v, after %v, patch %v: %s", before, after, patch, d)
		}
		if (len(patch) == 0) != cmp.Equal(before, after) {
			t.Fatalf("before %v, after %v: patch %v", before, after, patch)
		}
		if !untouched(patch, before, before) {
			t.Fatalf("before %v, patch %v: not untouched by itself", before, patch)
		}
	}
}

func TestLost(t *testing.T) {
	for _, tc := range []struct {
		name         string
		sent, answer any
		want         []string
	}{
		{"all is there, and more", m{"a": int64(1)}, m{"a": int64(1), "b": "default"}, nil},
		{"a field is missing", m{"a": int64(1), "b": "x"}, m{"a": int64(1)}, []string{"status.b"}},
		{"all of it is missing", m{"a": int64(1)}, nil, []string{"status"}},
		{"a whole object is missing", m{"a": m{"b": "x", "c": "y"}}, m{}, []string{"status.a"}},
		{"in every element", m{"l": []any{m{"n": "1", "u": "x"}, m{"n": "2", "u": "y"}}}, m{"l": []any{m{"n": "1"}, m{"n": "2"}}}, []string{"status.l[].u"}},
		{"another value", m{"a": "x"}, m{"a": "y"}, []string{"status.a"}},
		{"an element is missing", m{"l": []any{"x", "y"}}, m{"l": []any{"x"}}, []string{"status.l"}},
		{"empty values are not missed", m{"a": m{}, "l": []any{}}, m{}, nil},
		{"zero is a value", m{"a": int64(0)}, m{}, []string{"status.a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, slices.Compact(slices.Sorted(slices.Values(missingPaths("status", tc.sent, tc.answer))))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestUntouched(t *testing.T) {
	before := m{"metadata": m{"finalizers": []any{"a"}, "labels": m{"x": "1"}}}
	patch := m{"metadata": m{"finalizers": []any{"a", "b"}}}
	for _, tc := range []struct {
		name   string
		server m
		want   bool
	}{
		{"as it was", before, true},
		{"something else changed", m{"metadata": m{"finalizers": []any{"a"}, "labels": m{"x": "2"}}}, true},
		{"the same thing changed", m{"metadata": m{"finalizers": []any{"a", "c"}}}, false},
		{"it is gone", m{}, false},
	} {
		check.SameNamed(t, tc.name, tc.want, untouched(patch, before, tc.server))
	}
}
