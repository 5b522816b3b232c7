// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
)

// An annotation that an object has, and its manifest does not have, means nothing.
func TestDeletePoliciesWhenAnObjectIsDroppedAndWhenItsComponentIsDeleted(t *testing.T) {
	tests := []struct {
		name, annotation, value   string
		keptOnApply, keptOnDelete bool
	}{
		{"delete", engineName + "/delete-policy", "delete", false, false},
		{"orphan", engineName + "/delete-policy", "orphan", true, true},
		{"orphan-on-apply", engineName + "/delete-policy", "orphan-on-apply", true, false},
		{"orphan-on-delete", engineName + "/delete-policy", "orphan-on-delete", false, true},
		{"helm", "helm.sh/resource-policy", "keep", true, true},
		{"lifecycle", "client.lifecycle.config.k8s.io/deletion", "detach", true, true},
		{"cliutils", "cli-utils.sigs.k8s.io/on-remove", "keep", true, true},
		{"flux", "kustomize.toolkit.fluxcd.io/prune", "disabled", true, true},
		{"argoprune", "argocd.argoproj.io/sync-options", "Prune=false", true, false},
		{"argodelete", "argocd.argoproj.io/sync-options", "Delete=false", false, true},
		{"byhand", "example.com/none", "", false, false},
	}
	for _, dropped := range []bool{true, false} {
		b := newBench(t)
		objects := []client.Object{config("stays", "1")}
		for _, test := range tests {
			object := config(test.name, "1")
			object.SetAnnotations(map[string]string{test.annotation: test.value})
			objects = append(objects, object)
		}
		b.mustApply(objects...)
		b.change("byhand", func(c *corev1.ConfigMap) { c.Annotations["helm.sh/resource-policy"] = "keep" })
		if dropped {
			b.mustApply(objects[0])
		} else {
			b.mustDelete()
		}
		for _, test := range tests {
			b.checkLeft(test.name, dropped && test.keptOnApply || !dropped && test.keptOnDelete)
		}
	}
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
				check.NoError(t, b.Create(t.Context(), object, client.FieldOwner("former")))
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
			check.EqualNamed(t, "dropped: references", want, b.get("a").OwnerReferences)
			b.checkLeft("a", true)

			b.mustApply(objects...)
			b.change("a", func(c *corev1.ConfigMap) {
				c.OwnerReferences = []metav1.OwnerReference{toComponent, to("other"), to("goes"), to("stays")}
			})
			want = []metav1.OwnerReference{to("other")}
			b.mustDelete()
			check.EqualNamed(t, "deleted: references", want, b.get("a").OwnerReferences)
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
		b.t.Errorf("%s is left: %t, want %t", name, live != nil, left)
	case left && (live.Labels[engineName+"/owner-id"] != "" || live.Annotations[engineName+"/owner"] != ""):
		b.t.Errorf("our label or annotation was kept: %v", live.ObjectMeta)
	}
	for _, item := range b.inventory.Items {
		if item.Name == name {
			b.t.Errorf("it is still on record: %v", item)
		}
	}
}
