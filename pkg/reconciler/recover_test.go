// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/env"
)

// recovered asks for the objects of the bench's owner, by name.
func (b *bench) recovered(types ...v1alpha1.InventoryType) map[string]v1alpha1.InventoryItem {
	b.t.Helper()
	items, _, err := b.engine.Recover(b.t.Context(), reconciler.RecoverRequest{Owner: b.owner(), Inventory: b.inventory, Types: types})
	if err != nil {
		b.t.Fatal(err)
	}
	found := map[string]v1alpha1.InventoryItem{}
	for _, item := range items {
		found[item.Name] = item
	}
	return found
}

var configMapType = v1alpha1.InventoryType{Version: "v1", Kind: "ConfigMap"}

func TestRecoverFindsObjectsWithBothOwnershipLabelAndAnnotation(t *testing.T) {
	b := newBench(t)
	b.mustApply(
		config("plain", "1"),
		config("ordered", "1", "apply-order", "-3", "delete-order", "7"),
		config("orphan", "1", "delete-policy", "orphan-on-apply"),
		config("unreadable", "1"),
		config("dependent", "1", "depends-on", "ConfigMap/plain"),
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
	item := func(name string, change func(*v1alpha1.InventoryItem)) v1alpha1.InventoryItem {
		item := v1alpha1.InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: b.namespace, Name: name, UID: b.get(name).UID}
		change(&item)
		return item
	}
	want := map[string]v1alpha1.InventoryItem{
		"plain":   item("plain", func(*v1alpha1.InventoryItem) {}),
		"ordered": item("ordered", func(i *v1alpha1.InventoryItem) { i.ApplyOrder, i.DeleteOrder = -3, 7 }),
		"orphan":  item("orphan", func(i *v1alpha1.InventoryItem) { i.DeletePolicy = v1alpha1.DeletePolicyOrphanOnApply }),
		// A ConfigMap without a namespace does not exist, and keeps nothing.
		"dependent": item("dependent", func(i *v1alpha1.InventoryItem) {
			i.DependsOn = []string{"/ConfigMap//plain", "/ConfigMap/" + b.namespace + "/plain"}
		}),
		// It is not known that it may be deleted.
		"unreadable": item("unreadable", func(i *v1alpha1.InventoryItem) { i.DeletePolicy = v1alpha1.DeletePolicyOrphan }),
	}
	unserved := v1alpha1.InventoryType{Group: "never.example.com", Version: "v1", Kind: "Ghost"}
	if diff := cmp.Diff(want, b.recovered(configMapType, configMapType, unserved)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// Otherwise what has run before the deletion would be treated as an ordinary object,
// and would run again.
func TestRecoverKnowsWhatRunsBeforeTheDeletion(t *testing.T) {
	b := newBench(t)
	hook := config("backup", "1", "run-on", "pre-delete")
	b.mustApply(config("a", "1", "delete-order", "1"), hook)
	b.change("a", func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	remove := func() (reconciler.Outcome, error) {
		outcome, err := b.engine.Delete(t.Context(), reconciler.DeleteRequest{
			Owner: b.owner(), Namespace: b.namespace, Inventory: b.inventory, Objects: []client.Object{hook}, Record: func(_ context.Context, inventory v1alpha1.Inventory) error {
				if b.inventory = inventory; b.get("backup") != nil {
					return errors.New("we have crashed")
				}
				return nil
			},
		})
		return outcome, err
	}
	if _, err := remove(); err == nil || b.get("backup") == nil {
		t.Fatalf("the hook has not run, or we did not crash: %v", err)
	}
	if got := b.recovered(configMapType)["backup"].RunOn; got != "pre-delete" {
		t.Errorf("it runs on %q", got)
	}
	b.change("a", func(c *corev1.ConfigMap) { c.Finalizers = nil })
}

func TestRecoverKnowsWhichTypesAnObjectBrings(t *testing.T) {
	b := newBench(t)
	if _, err := b.apply(definition("lostthings", "LostThing")); err != nil {
		t.Fatal(err)
	}
	found := b.recovered(v1alpha1.InventoryType{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	want := []reconciler.TypeInfo{{Group: "engine.corbel.run", Kind: "LostThing"}}
	if diff := cmp.Diff(want, found["lostthings.engine.corbel.run"].Defines); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if _, err := b.delete(); err != nil {
		t.Fatal(err)
	}
}

func TestRecoverListsTheRecordedNamespacesIfItMayNotListAll(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	user := "tenant-of-" + b.namespace
	subject := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	name := metav1.ObjectMeta{Name: user, Namespace: b.namespace}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"namespaces"}}}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user}, Subjects: subject},
		&rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}}},
		&rbacv1.RoleBinding{ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user}, Subjects: subject},
	} {
		if err := b.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	restConfig, err := env.Shared(t).ConfigFor(user)
	if err != nil {
		t.Fatal(err)
	}
	target, err := cluster.New(restConfig, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	if b.engine, err = reconciler.NewReconciler(engineName, target, keyed(reconciler.ReconcilerOptions{})); err != nil {
		t.Fatal(err)
	}
	request := reconciler.RecoverRequest{Owner: b.owner(), Inventory: b.inventory, Types: []v1alpha1.InventoryType{configMapType}}
	// The server's authorizer learns of the new roles a moment later.
	var items []v1alpha1.InventoryItem
	request.Namespaces = []string{b.namespace}
	for deadline := time.Now().Add(2 * time.Minute); len(items) == 0; time.Sleep(20 * time.Millisecond) {
		if items, _, err = b.engine.Recover(t.Context(), request); err != nil && time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if len(items) != 1 || items[0].Name != "a" {
		t.Errorf("found %v", items)
	}
	// Without any record, a type that may not be listed is named, unless that is all there is to look for.
	whole := request
	whole.Since, whole.Types = time.Now().Add(-time.Hour), append(whole.Types, v1alpha1.InventoryType{Version: "v1", Kind: "ServiceAccount"})
	if found, unlisted, err := b.engine.Recover(t.Context(), whole); err != nil || len(found) != 1 || !slices.Equal(unlisted, []string{"ServiceAccount"}) {
		t.Errorf("found %v, not listed %v, error %v", found, unlisted, err)
	}
	whole.Types = whole.Types[1:]
	if _, _, err := b.engine.Recover(t.Context(), whole); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	for _, namespaces := range [][]string{nil, {b.namespace, "kube-system"}} {
		request.Namespaces = namespaces
		if items, _, err := b.engine.Recover(t.Context(), request); err == nil || len(items) > 0 || !strings.Contains(err.Error(), "type ConfigMap") {
			t.Errorf("namespaces %v: %d objects, error %v", namespaces, len(items), err)
		}
	}
}

// Nothing is left of the record: whatever type the objects have, and whichever owner of the name made them, they are found once.
// What a record that was lost had written is written again, although it is not known before the creation is refused.
func TestAnObjectThatWasThereBeforeItsRecordIsWritten(t *testing.T) {
	b := newBench(t)
	before := config("a", "1")
	before.Object["data"].(map[string]any)["dropped"] = "1"
	b.mustApply(before)
	b.inventory = v1alpha1.Inventory{}
	b.engine = newEngine(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1"))
	if data := b.get("a").Data; data["dropped"] != "" {
		t.Errorf("data of an earlier manifest are left: %v", data)
	}
}

func TestRecoverWithoutARecord(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	ours := b.get("a")
	earlier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "earlier", Labels: ours.Labels, Annotations: maps.Clone(ours.Annotations)}}
	earlier.Annotations[engineName+"/owner"] += "0"
	copied := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "copied", Labels: ours.Labels}}
	for _, object := range []client.Object{earlier, copied} {
		if err := b.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	request := reconciler.RecoverRequest{Owner: b.owner(), Patterns: []reconciler.TypeInfo{{Group: "*", Kind: "*"}}}
	for name, test := range map[string]struct {
		since time.Time
		want  reconciler.DeletePolicy
	}{
		"made for the owner":   {ours.CreationTimestamp.Time, ""},
		"older than the owner": {copied.CreationTimestamp.Add(time.Second), v1alpha1.DeletePolicyOrphan},
	} {
		request.Since = test.since
		found, unlisted, err := b.engine.Recover(t.Context(), request)
		if err != nil || len(unlisted) > 0 {
			t.Fatal(unlisted, err)
		}
		got := map[string]reconciler.DeletePolicy{}
		for _, item := range found {
			got[item.Name] = item.DeletePolicy
		}
		if diff := cmp.Diff(map[string]reconciler.DeletePolicy{"a": test.want, "earlier": test.want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	// What an earlier owner has left is named once, and stays.
	b.inventory.Items = nil
	request.Since = ours.CreationTimestamp.Time
	b.inventory.Items, _, _ = b.engine.Recover(t.Context(), request)
	outcome := b.mustApply(config("b", "1"))
	if b.get("earlier"); !slices.ContainsFunc(outcome.Notes, func(n report.Note) bool { return n.Key.Name == "earlier" && n.Reason == "Released" }) {
		t.Errorf("notes %v", outcome.Notes)
	}
}
