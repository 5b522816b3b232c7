// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestAdoption(t *testing.T) {
	helm := map[string]string{"meta.helm.sh/release-name": "web"}
	tests := []struct {
		name, policy string
		annotations  map[string]string
		taken        bool
	}{
		{"takes what nobody owns", "if-unowned", nil, true},
		{"leaves what Helm owns", "if-unowned", helm, false},
		{"never takes what exists", "never", nil, false},
		{"always takes", "always", helm, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			existing := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a", Annotations: test.annotations},
				Data:       map[string]string{"value": "theirs"},
			}
			if err := b.Create(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			_, err := b.apply(config("a", "ours", "adoption-policy", test.policy), config("other", "1"))
			conflict, refused := errors.AsType[*reconciler.OwnerConflictError](err)
			if refused == test.taken {
				t.Fatalf("got %v", err)
			}
			want := "ours"
			if refused {
				want = "theirs"
				if !strings.Contains(conflict.Error(), "ConfigMap "+b.namespace+"/a") {
					t.Errorf("the error does not name the object: %v", conflict)
				}
			}
			if got := b.get("a").Data["value"]; got != want {
				t.Errorf("value %q, want %q", got, want)
			}
			if b.get("other") == nil {
				t.Error("the conflict of one object stopped the other")
			}
			// What is not ours survives the deletion, what was taken does not.
			if outcome, err := b.delete(); err != nil || !outcome.Done() {
				t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
			}
			if gone := b.get("a") == nil; gone != test.taken {
				t.Errorf("gone: %v", gone)
			}
		})
	}
}

func TestPruneAndOrphan(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("kept", "1"), config("dropped", "1"), config("orphan", "1", "delete-policy", "orphan-on-apply"))
	b.mustApply(config("kept", "1"))
	if b.get("kept") == nil || b.get("dropped") != nil {
		t.Error("the wrong objects were pruned")
	}
	orphan := b.get("orphan")
	if orphan == nil || orphan.Labels[engineName+"/owner-id"] != "" || orphan.Annotations[engineName+"/owner"] != "" {
		t.Errorf("the orphan was not released: %v", orphan)
	}
	if got := len(b.inventory.Items); got != 1 {
		t.Errorf("%d objects are recorded, want 1", got)
	}
}

func TestAForgedInventoryTouchesNothing(t *testing.T) {
	b := newBench(t)
	victim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "victim"}}
	if err := b.Create(t.Context(), victim); err != nil {
		t.Fatal(err)
	}
	b.inventory = reconciler.Inventory{Format: 1, Items: []reconciler.InventoryItem{
		{Version: "v1", Kind: "ConfigMap", Namespace: b.namespace, Name: "victim", UID: victim.UID},
	}}
	if outcome, err := b.delete(); err != nil || !outcome.Done() {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	if b.get("victim") == nil {
		t.Error("an object that is not ours was deleted")
	}
}

func TestInventoriesOfOthersAreRefused(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	mine := b.inventory

	b.inventory.Target = "another-cluster"
	_, err := b.apply(config("a", "2"))
	if _, changed := errors.AsType[*reconciler.TargetChangedError](err); !changed {
		t.Errorf("another cluster: got %v", err)
	}
	b.inventory = mine
	b.inventory.Format = 99
	if _, err := b.apply(config("a", "2")); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("a newer format: got %v", err)
	}
	if got := b.get("a").Data["value"]; got != "1" {
		t.Errorf("value %q, want 1", got)
	}
}
