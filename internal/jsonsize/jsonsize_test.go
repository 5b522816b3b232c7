// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package jsonsize

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/test/check"
)

func TestTheSizeIsThatOfTheEncodedValue(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, value := range []any{
		nil, true, false, "", "text", string(all), "\u2028\u2029 \U0001f600 <&>", int64(0), int64(-1), int64(math.MinInt64), int64(math.MaxInt64),
		0.0, 1.5, -1e-7, 1e21, 1e300, 5e-324, 0.1, 123456789.125, map[string]any{}, []any{},
		map[string]any{"a": int64(1), "b": []any{"x", nil, 2.5, map[string]any{"c": []any{[]any{}, map[string]any{}}}}, "<": "\n"},
	} {
		encoded := check.Must(json.Marshal(value))(t)
		if got := Of(value, 1<<20); got != len(encoded) {
			t.Errorf("%s: got %d, want %d", encoded, got, len(encoded))
		}
	}
}

func TestSharedValuesCountAsOftenAsTheyOccur(t *testing.T) {
	shared := map[string]any{"a": strings.Repeat("x", 1000)}
	for range 40 { // no memory holds this once it is encoded
		shared = map[string]any{"a": shared, "b": shared}
	}
	contained := map[string]any{}
	contained["self"] = contained
	chain := []any{}
	for range 1_000_000 {
		chain = []any{chain}
	}
	type node struct{ Next *node }
	ring := &node{}
	ring.Next = ring
	for name, value := range map[string]any{"shared": shared, "contains itself": contained, "deep": chain, "a ring of pointers": ring} {
		if got := Of(value, 1<<20); got <= 1<<20 {
			t.Errorf("%s: got %d, want more than the limit", name, got)
		}
	}
}

func TestTypedValuesAreEstimated(t *testing.T) {
	deployment := &appsv1.Deployment{}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "web", Args: []string{strings.Repeat("x", 10_000)}}}
	deployment.Annotations = map[string]string{"a": strings.Repeat("x", 5_000)}
	if got := Of(deployment, 1<<20); got < 15_000 || got > 16_000 {
		t.Errorf("got %d", got)
	}
	if got := Of(map[string][]byte{"a": make([]byte, 3000)}, 1<<20); got < 4000 || got > 4100 {
		t.Errorf("got %d", got)
	}
}
