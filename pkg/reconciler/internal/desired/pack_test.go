// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

func TestPackedObjectsAreTheSame(t *testing.T) {
	texts := []string{
		`{apiVersion: v1, kind: Secret, metadata: {name: keys}, data: {pin: NDcxMQ==}}`,
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: signs}, data: {text: "ünïcode\nline\u2028 <&> \t"}}`,
	}
	for i := range 300 {
		texts = append(texts, fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}, data: {value: %q}}", i, strings.Repeat(fmt.Sprint(i), i)))
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "api", "annotations": map[string]any{"shop.example.com/apply-order": "5"}},
		"spec": map[string]any{
			"replicas": int64(3), "huge": int64(9007199254740993), "ratio": 0.5, "paused": false,
			"empty": map[string]any{}, "none": []any{}, "nothing": nil,
		},
	}}
	objects := check.Must(Build(t.Context(), input(append(parse(t, strings.Join(texts, "\n---\n")), deployment)...)))(t)
	pack, ok := NewPack(objects)
	if !ok {
		t.Fatal("they cannot be packed")
	}
	packed := pack.Objects()
	blocks := map[*block]bool{}
	unpacked := make([]plan.Desired, len(packed))
	for i := range packed {
		if packed[i].Manifest != nil {
			t.Fatalf("%s is not packed", packed[i].Key)
		}
		blocks[packed[i].Packed.(*packedManifest).block] = true
		unpacked[i] = *packed[i].Unpacked()
		unpacked[i].Packed = nil
	}
	check.EqualNamed(t, "packed and unpacked, the objects have changed", objects, unpacked)
	held := 0
	for block := range blocks {
		held += len(block.compressed)
	}
	if held += len(objects) * perObject; len(blocks) < 2 || held != pack.Size {
		t.Errorf("%d blocks of %d bytes together, and %d bytes were said", len(blocks), held, pack.Size)
	}
	again, ok := NewPack(packed)
	if !ok || again.Size != pack.Size {
		t.Fatalf("what is packed takes %d bytes if it is packed once more, and took %d", again.Size, pack.Size)
	}
	check.EqualNamed(t, "packed twice, an object has changed", objects[7].Manifest, again.Objects()[7].Unpacked().Manifest)
}

func TestAnUnpackedManifestIsACopy(t *testing.T) {
	objects := check.Must(Build(t.Context(), input(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {value: "1"}}`)...)))(t)
	pack, _ := NewPack(objects)
	packed := pack.Objects()
	packed[0].Unpacked().Manifest.Object["data"] = "spoilt"
	check.EqualNamed(t, "a change of an unpacked manifest is in the next one", objects[0].Manifest, packed[0].Unpacked().Manifest)
}
