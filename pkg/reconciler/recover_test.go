// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// recovered asks for the objects of the bench's owner, by name.
func (b *bench) recovered(types ...reconciler.InventoryType) map[string]reconciler.InventoryItem {
	b.t.Helper()
	items, err := b.engine.Recover(b.t.Context(), reconciler.RecoverRequest{Owner: b.owner(), Inventory: b.inventory, Types: types})
	if err != nil {
		b.t.Fatal(err)
	}
	found := map[string]reconciler.InventoryItem{}
	for _, item := range items {
		found[item.Name] = item
	}
	return found
}

var configMapType = reconciler.InventoryType{Version: "v1", Kind: "ConfigMap"}

func TestRecoverFindsWhatBearsOurMarksInFull(t *testing.T) {
	b := newBench(t)
	b.mustApply(
		config("plain", "1"),
		config("ordered", "1", "apply-order", "-3", "delete-order", "7"),
		config("orphan", "1", "delete-policy", "orphan-on-apply"),
		config("unreadable", "1"),
	)
	ours := b.get("plain")
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "copied", Labels: ours.Labels}}
	earlier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "earlier", Labels: ours.Labels, Annotations: maps.Clone(ours.Annotations)}}
	earlier.Annotations[engineName+"/owner"] += "0"
	unreadable := b.get("unreadable")
	unreadable.Annotations[engineName+"/delete-policy"] = "perhaps"
	for _, err := range []error{b.Create(t.Context(), copied), b.Create(t.Context(), earlier), b.Update(t.Context(), unreadable)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	item := func(name string, change func(*reconciler.InventoryItem)) reconciler.InventoryItem {
		item := reconciler.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: b.namespace, Name: name, UID: b.get(name).UID}
		change(&item)
		return item
	}
	want := map[string]reconciler.InventoryItem{
		"plain":   item("plain", func(*reconciler.InventoryItem) {}),
		"ordered": item("ordered", func(i *reconciler.InventoryItem) { i.ApplyOrder, i.DeleteOrder = -3, 7 }),
		"orphan":  item("orphan", func(i *reconciler.InventoryItem) { i.DeletePolicy = reconciler.DeletePolicyOrphanOnApply }),
		// It is not known that it may be deleted.
		"unreadable": item("unreadable", func(i *reconciler.InventoryItem) { i.DeletePolicy = reconciler.DeletePolicyOrphan }),
	}
	unserved := reconciler.InventoryType{Group: "never.example.com", Version: "v1", Kind: "Ghost"}
	if diff := cmp.Diff(want, b.recovered(configMapType, configMapType, unserved)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

func TestRecoverKnowsWhichTypesAnObjectBrings(t *testing.T) {
	b := newBench(t)
	if _, err := b.apply(definition("lostthings", "LostThing")); err != nil {
		t.Fatal(err)
	}
	found := b.recovered(reconciler.InventoryType{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	want := []reconciler.TypeInfo{{Group: "engine.corbel.run", Kind: "LostThing"}}
	if diff := cmp.Diff(want, found["lostthings.engine.corbel.run"].Defines); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if _, err := b.delete(); err != nil {
		t.Fatal(err)
	}
}

func TestRecoverReturnsNothingIfAnythingIsNotKnown(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	b.inventory.Target = "another-cluster"
	_, err := b.engine.Recover(t.Context(), reconciler.RecoverRequest{Owner: b.owner(), Inventory: b.inventory, Types: []reconciler.InventoryType{configMapType}})
	if err == nil || !strings.Contains(err.Error(), "another-cluster") {
		t.Errorf("another cluster: %v", err)
	}
	b.inventory.Target = ""
	// It can be served, but not listed.
	review := reconciler.InventoryType{Group: "authorization.k8s.io", Version: "v1", Kind: "SelfSubjectAccessReview"}
	items, err := b.engine.Recover(t.Context(), reconciler.RecoverRequest{Owner: b.owner(), Inventory: b.inventory, Types: []reconciler.InventoryType{configMapType, review}})
	if err == nil || len(items) > 0 || !strings.Contains(err.Error(), "SelfSubjectAccessReview.authorization.k8s.io") {
		t.Errorf("%d objects, error: %v", len(items), err)
	}
}
