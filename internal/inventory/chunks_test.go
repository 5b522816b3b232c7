// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/gzipped"
)

func keyOf(s *corev1.Secret) client.ObjectKey { return client.ObjectKeyFromObject(s) }

func TestTheNumberOfChunksDoesNotFlip(t *testing.T) {
	const kib = 1 << 10
	tests := []struct {
		name            string
		size, now, want int
	}{
		{"fits into the status", 64 * kib, 0, 0},
		{"does not fit any more", 64*kib + 1, 0, 2},
		{"stays although it would fit", 50 * kib, 2, 2},
		{"comes back when there is room again", 48*kib - 1, 2, 0},
		{"grows in its chunks", 4 * 128 * kib, 4, 4},
		{"needs more", 4*128*kib + 1, 4, 16},
		{"shrinks in its chunks", 64 * 8 * kib, 64, 64},
		{"needs fewer", 64*8*kib - 1, 64, 8},
		{"is not moved for nothing", 8 * 64 * kib, 8, 8},
		{"is as large as can be", 1 << 30, 0, 256},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			l := limitsFor(DefaultThreshold)
			got := l.chunks(test.size, test.now)
			if got != test.want {
				t.Errorf("%d bytes in %d chunks move to %d, want %d", test.size, test.now, got, test.want)
			}
			if again := l.chunks(test.size, got); again != got {
				t.Errorf("then they move on to %d", again)
			}
		})
	}
}

func TestKeysAreSpreadAndStayWhereTheyAre(t *testing.T) {
	const n, chunks = 20000, 64
	counts := make([]int, chunks)
	for i := range n {
		item := v1alpha1.InventoryItem{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("config-%d", i)}
		counts[chunkOf(item, chunks)]++
		changed := item
		changed.UID, changed.Digest, changed.Version = "u", "d", "v2"
		if chunkOf(item, chunks) != chunkOf(changed, chunks) {
			t.Fatal("the chunk depends on more than the key")
		}
	}
	for i, count := range counts {
		if count < n/chunks*3/4 || count > n/chunks*5/4 {
			t.Errorf("chunk %d has %d of %d items", i, count, n)
		}
	}
	// Another version must find the items of a lost chunk, too.
	got := chunkOf(v1alpha1.InventoryItem{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}, 256)
	if want := 129; got != want {
		t.Errorf("chunk %d, want %d: the function must never change", got, want)
	}
}

func TestWhatTheStatusHoldsIsSmall(t *testing.T) {
	head := v1alpha1.InventoryChunks{Generation: maxNumber, Current: maxNumber, Revision: maxNumber}
	for range maxChunks {
		head.Chunks = append(head.Chunks, v1alpha1.InventoryChunk{Count: 1 << 20, Revision: maxNumber, Hash: hashOf(nil)})
	}
	for range maxTypes {
		head.Types = append(head.Types, v1alpha1.InventoryType{Group: "some-quite-long-group.of.an-operator.example.com", Version: "v1beta1", Kind: "SomeKindWithALongName"})
	}
	raw, err := json.Marshal(withHead(v1alpha1.Inventory{}, head))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) > 512<<10 {
		t.Errorf("the largest head has %d bytes", len(raw))
	}
}

func TestUnknownFieldsOfItemsSurvive(t *testing.T) {
	var before []v1alpha1.InventoryItem
	if err := json.Unmarshal([]byte(`[{"version":"v1","kind":"ConfigMap","name":"a","future":{"x":[1,2]}}]`), &before); err != nil {
		t.Fatal(err)
	}
	encoded, _, err := encode(before)
	if err != nil {
		t.Fatal(err)
	}
	raw := distribute(encoded, 1)[0].raw
	after, err := unpack(gzipped.Pack(raw), v1alpha1.InventoryChunk{Count: 1, Hash: hashOf(raw)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestNamesAreReadAsTheyAreMade(t *testing.T) {
	names := NewStore(Options{Name: reconcilerName}).naming(Component{Kind: "Shop", Namespace: "shop", Name: "a.very-long.name-that-goes-on-and-on.-and-on-and-on", UID: "1"})
	generation, index, ok := names.parse(names.name(12, 3))
	if generation != 12 || index != 3 || !ok {
		t.Errorf("%s is read as %d, %d, %t", names.name(12, 3), generation, index, ok)
	}
	for _, name := range []string{"other", names.prefix, names.prefix + "1", names.prefix + "1-", names.prefix + "01-1", names.prefix + "-1-1", names.name(1, 1) + "-1"} {
		if _, _, ok := names.parse(name); ok {
			t.Errorf("%s is taken for one of ours", name)
		}
	}
	for _, key := range []string{"", "r", "r-1", "r01", "1", "r1x", "r9223372036854775807"} {
		if _, ok := parseEntryKey(key); ok {
			t.Errorf("entry %q is taken for one of ours", key)
		}
	}
}
