// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestAMendedStatusKeepsItsInventory(t *testing.T) {
	decode := func(content map[string]any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(content, &widget{})
	}
	record := map[string]any{"format": "three"}
	stored := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"revision": "one", "inventory": record, "progress": "1/1",
		"conditions": []any{map[string]any{"type": "Done", "status": true}, "no condition"},
	}}}
	mistake := &undecodableError{object: stored, err: decode(stored.Object), decode: decode}
	if mistake.mendStatus() {
		t.Error("a record that cannot be read counts as mended")
	}
	want := map[string]any{"inventory": record, "progress": "1/1", "conditions": []any{map[string]any{"type": "Done"}}}
	if diff := cmp.Diff(want, stored.Object["status"]); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	record["format"] = int64(3)
	if !mistake.mendStatus() {
		t.Error("a status that decodes is not mended")
	}
	stored.Object["status"] = "fine"
	if _, left := stored.Object["status"]; !mistake.mendStatus() || !left {
		t.Error("a status that is no object is not dropped")
	}
	stored.Object["spec"] = "none"
	if mistake.mendStatus() {
		t.Error("a spec that does not decode is mended")
	}
}
