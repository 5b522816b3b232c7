// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package untyped

import (
	"strings"
	"testing"
)

func TestInto(t *testing.T) {
	type reference struct {
		Name   string            `json:"name"`
		loaded map[string][]byte `json:"-"`
	}
	var into struct {
		Spec struct {
			Count int64      `json:"count"`
			Ref   *reference `json:"ref"`
		} `json:"spec"`
	}
	spec := func(more map[string]any) map[string]any {
		more["ref"] = map[string]any{"name": "a"}
		return map[string]any{"spec": more}
	}
	if unknown, err := Into(spec(map[string]any{"count": int64(1) << 60}), &into); err != nil || unknown != nil || into.Spec.Count != 1<<60 || into.Spec.Ref.Name != "a" || into.Spec.Ref.loaded != nil {
		t.Errorf("got %+v, %v and %v", into, unknown, err)
	}
	if unknown, err := Into(spec(map[string]any{"colour": "red"}), &into); err != nil || len(unknown) != 1 || !strings.Contains(unknown[0].Error(), `unknown field "spec.colour"`) {
		t.Errorf("an unknown field: %v and %v", unknown, err)
	}
	if _, err := Into(spec(map[string]any{"count": "one"}), &into); err == nil {
		t.Error("a text is no number")
	}
}
