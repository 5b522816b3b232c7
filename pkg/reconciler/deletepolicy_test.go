// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestDeletePoliciesWhenAnObjectIsDroppedAndWhenItsComponentIsDeleted(t *testing.T) {
	for _, test := range []struct {
		policy                    string
		keptOnApply, keptOnDelete bool
	}{
		{"delete", false, false},
		{"orphan", true, true},
		{"orphan-on-apply", true, false},
		{"orphan-on-delete", false, true},
	} {
		t.Run(test.policy, func(t *testing.T) {
			b := newBench(t)
			b.mustApply(config("a", "1", "delete-policy", test.policy), config("b", "1", "delete-policy", test.policy))
			b.mustApply(config("b", "1", "delete-policy", test.policy))
			b.checkLeft("a", test.keptOnApply)
			if outcome, err := b.delete(); err != nil || !outcome.Done() {
				t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
			}
			b.checkLeft("b", test.keptOnDelete)
		})
	}
}

// TestKeepAnnotationsOfOtherToolsAreDeletePolicies: a live object that has one which
// its manifest does not have is deleted like any other.
func TestKeepAnnotationsOfOtherToolsAreDeletePolicies(t *testing.T) {
	tools := []struct {
		name, annotation, value string
		onApply, onDelete       bool
	}{
		{"helm", "helm.sh/resource-policy", "keep", true, true},
		{"lifecycle", "client.lifecycle.config.k8s.io/deletion", "detach", true, true},
		{"cliutils", "cli-utils.sigs.k8s.io/on-remove", "keep", true, true},
		{"flux", "kustomize.toolkit.fluxcd.io/prune", "disabled", true, true},
		{"argoprune", "argocd.argoproj.io/sync-options", "Prune=false", true, false},
		{"argodelete", "argocd.argoproj.io/sync-options", "Delete=false", false, true},
		{"byhand", "", "", false, false},
	}
	for _, dropped := range []bool{true, false} {
		b := newBench(t)
		objects := []client.Object{config("stays", "1")}
		for _, tool := range tools {
			object := config(tool.name, "1")
			if tool.annotation != "" {
				object.SetAnnotations(map[string]string{tool.annotation: tool.value})
			}
			objects = append(objects, object)
		}
		b.mustApply(objects...)
		b.change("byhand", func(c *corev1.ConfigMap) { c.Annotations["helm.sh/resource-policy"] = "keep" })
		if dropped {
			b.mustApply(objects[0])
		} else if outcome, err := b.delete(); err != nil || !outcome.Done() {
			t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
		}
		for _, tool := range tools {
			b.checkLeft(tool.name, dropped && tool.onApply || !dropped && tool.onDelete)
		}
	}
}

func TestADroppedObjectIsOrphanedAlsoIfItsComponentIsDeletedBeforeItsWave(t *testing.T) {
	b := newBench(t)
	stays := config("stays", "1")
	b.mustApply(stays, config("first", "1"), config("a", "1", "delete-policy", "orphan-on-apply", "delete-order", "1"))
	b.change("first", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	if outcome, err := b.apply(stays); err != nil || outcome.Done() {
		t.Fatalf("nothing is waited for (%v)", err)
	}
	if left := b.get("a"); left.Labels[engineName+"/owner-id"] == "" {
		t.Fatal("it did not wait for its wave")
	}
	if _, err := b.delete(); err != nil {
		t.Fatal(err)
	}
	b.change("first", func(c *corev1.ConfigMap) { c.Finalizers = nil })
	if outcome, err := b.delete(); err != nil || !outcome.Done() {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	b.checkLeft("a", true)
	b.checkLeft("stays", false)
}

// TestNoReferenceLetsTheGarbageCollectorDeleteAnOrphan: a former operator has made the object with an ownerReference to
// the component.
func TestNoReferenceLetsTheGarbageCollectorDeleteAnOrphan(t *testing.T) {
	for _, update := range []string{"replace", "ssa-merge", "ssa-override"} {
		t.Run(update, func(t *testing.T) {
			b := newBench(t)
			owner := b.owner()
			toComponent := metav1.OwnerReference{APIVersion: owner.Group + "/v1", Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: new(true), BlockOwnerDeletion: new(true)}
			to := func(name string) metav1.OwnerReference {
				return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: b.get(name).UID}
			}
			other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "other"}}
			former := other.DeepCopy()
			former.Name, former.OwnerReferences = "a", []metav1.OwnerReference{toComponent}
			for _, object := range []client.Object{other, former} {
				if err := b.Create(t.Context(), object, client.FieldOwner("former")); err != nil {
					t.Fatal(err)
				}
			}
			objects := []client.Object{config("a", "1", "delete-policy", "orphan", "update-policy", update), config("goes", "1", "delete-order", "-1"), config("stays", "1")}
			b.mustApply(objects...)
			if left := b.get("a").OwnerReferences; len(left) > 0 {
				t.Errorf("after the adoption it refers to %v", left)
			}
			b.change("a", func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{toComponent, to("other"), to("goes"), to("stays")}
			})
			b.mustApply(objects...)
			want := []metav1.OwnerReference{to("other"), to("stays")}
			b.mustApply(objects[2])
			if diff := cmp.Diff(want, b.get("a").OwnerReferences); diff != "" {
				t.Errorf("dropped: references (-want +got):\n%s", diff)
			}
			b.checkLeft("a", true)

			b.mustApply(objects...)
			b.change("a", func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{toComponent, to("other"), to("goes"), to("stays")}
			})
			want = []metav1.OwnerReference{to("other")}
			if outcome, err := b.delete(); err != nil || !outcome.Done() {
				t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
			}
			if diff := cmp.Diff(want, b.get("a").OwnerReferences); diff != "" {
				t.Errorf("deleted: references (-want +got):\n%s", diff)
			}
			b.checkLeft("a", true)
			b.checkLeft("goes", false)
		})
	}
}

// checkLeft expects an object to be gone, or to be orphaned without our label and annotation.
func (b *bench) checkLeft(name string, left bool) {
	b.t.Helper()
	live := b.get(name)
	switch {
	case (live != nil) != left:
		b.t.Errorf("orphaned: %t, want %t", live != nil, left)
	case left && (live.Labels[engineName+"/owner-id"] != "" || live.Annotations[engineName+"/owner"] != ""):
		b.t.Errorf("our label or annotation was kept: %v", live.ObjectMeta)
	}
	for _, item := range b.inventory.Items {
		if item.Name == name {
			b.t.Errorf("it is still on record: %v", item)
		}
	}
}
