// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// placed makes three config maps that bear the name of the deployment, and have its
// namespace by default.
func placed(_ context.Context, _, name string, _ types.Unstructurable) ([]client.Object, error) {
	return []client.Object{configMap(name+"-a", nil), configMap(name+"-b", nil), configMap(name+"-c", nil)}, nil
}

// newNamespace makes a namespace of the user.
func (b *bed) newNamespace() string {
	b.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: b.namespace + "-"}}
	b.check(b.client.Create(b.Context(), namespace))
	return namespace.Name
}

// owned returns the config maps of a deployment, and which of them have our label and annotation.
func (b *bed) owned(namespace, name string) (all, ours []string) {
	b.Helper()
	list := &corev1.ConfigMapList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(namespace)))
	for _, c := range list.Items {
		if !strings.HasPrefix(c.Name, name+"-") {
			continue
		}
		all = append(all, c.Name)
		if c.Labels[operatorName+"/owner-id"] != "" || c.Annotations[operatorName+"/owner"] != "" {
			ours = append(ours, c.Name)
		}
	}
	return all, ours
}

func TestADeploymentThatMovesIsCreatedAnewBeforeTheOldOneIsPruned(t *testing.T) {
	for _, move := range []struct {
		name            string
		namespace, text bool // what of the placement changes
		policy          v1alpha1.DeletePolicy
	}{
		{"to another namespace", true, false, v1alpha1.DeletePolicyDelete}, {"to another name", false, true, v1alpha1.DeletePolicyOrphan},
		{"to another name in another namespace", true, true, v1alpha1.DeletePolicyDelete},
	} {
		t.Run(move.name+" under "+string(move.policy), func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(placed), component.ReconcilerOptions{DeletePolicy: &move.policy})
			before := component.PlacementSpec{Namespace: b.newNamespace(), Name: "old"}
			after := before
			if move.namespace {
				after.Namespace = b.newNamespace()
			}
			if move.text {
				after.Name = "new"
			}
			b.create(widget.Spec{PlacementSpec: before})
			b.until(v1alpha1.StateReady)
			b.update(func(w *widget.Widget) { w.Spec.PlacementSpec = after })
			b.resetRequests()
			w := b.untilGeneration()

			if _, ours := b.owned(after.Namespace, after.Name); len(ours) != 3 || w.Status.Inventory.Count() != 3 {
				t.Errorf("%v are there; %d objects on record", ours, w.Status.Inventory.Count())
			}
			orphaned := move.policy == v1alpha1.DeletePolicyOrphan
			left, stillOurs := b.owned(before.Namespace, before.Name)
			if (len(left) == 3) != orphaned || (len(left) == 0) == orphaned || len(stillOurs) > 0 {
				t.Errorf("of the old ones %v are left, and %v still have our label and annotation", left, stillOurs)
			}
			b.wantOldAfterNew()
		})
	}
}

// wantOldAfterNew looks at the writes since the last resetRequests: all creations come before
// whatever is done to old objects.
func (b *bed) wantOldAfterNew() {
	b.Helper()
	created, old := -1, -1
	for i, e := range b.events()[b.since:] {
		if e.User != b.user || e.Resource != "configmaps" || e.Code >= 400 {
			continue
		}
		switch e.Verb {
		case "create":
			created = i
		case "delete", "patch", "update":
			if old < 0 {
				old = i
			}
		}
	}
	if created < 0 || old < 0 || created > old {
		b.Errorf("the last creation is request %d, the first that is about an old object %d:\n%v", created, old, b.writes())
	}
}

func TestADeploymentStaysWhereItIsWhileItCannotBeWhereItShall(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(placed), component.ReconcilerOptions{MissingNamespacesPolicy: new(v1alpha1.MissingNamespacesPolicyDoNotCreate)})
	b.create(widget.Spec{})
	before := b.until(v1alpha1.StateReady)
	missing := b.namespace + "-missing"
	b.update(func(w *widget.Widget) { w.Spec.Namespace = missing })
	b.resetRequests()
	for range 3 {
		w, _, _ := b.reconcile()
		if _, _, message := w.Status.GetState(); w.Status.IsReady() || !strings.Contains(message, missing) {
			t.Errorf("the component says: %s", message)
		}
	}
	if _, ours := b.owned(b.namespace, "main"); len(ours) != 3 {
		t.Errorf("of the old ones only %v are left", ours)
	}
	for _, write := range b.writes() {
		if !strings.HasPrefix(write, "patch widgets/status ") && write != "patch secrets main-revisions" {
			t.Errorf("write: %s", write)
		}
	}
	b.check(b.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: missing}}))
	w := b.untilGeneration()
	left, _ := b.owned(b.namespace, "main")
	if _, ours := b.owned(missing, "main"); len(ours) != 3 || len(left) > 0 || w.Status.Inventory.Count() != before.Status.Inventory.Count() {
		t.Errorf("%v are there, %v are left; on record are %v", ours, left, w.Status.Inventory.Items)
	}
}

func TestAnIgnoredObjectThatGoesAwayIsCreatedAtOnce(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyIgnore)})
	theirs := &corev1.ConfigMap{ObjectMeta: b.object("a")}
	b.check(b.client.Create(t.Context(), theirs))
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	if recorded := b.get().Status.Inventory.Items; len(theirs.Data) > 0 || len(recorded) > 0 {
		t.Errorf("it has %v, and on record is %v", theirs.Data, recorded)
	}
	b.check(b.client.Delete(t.Context(), theirs))
	b.expectRequeue("the end of the config map")
	b.until(v1alpha1.StateReady)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs))
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
}

func TestTheEndOfForeignInstancesRequeuesTheDeletionThatTheyBlock(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{
		TypeSpec: component.TypeSpec{AdditionalManagedTypes: []v1alpha1.TypeInfo{{Group: "batch", Kind: "CronJob"}}},
		Values:   map[string]string{"a": "1"},
	})
	b.until(v1alpha1.StateReady)
	foreign := read("{apiVersion: batch/v1, kind: CronJob, metadata: {name: foreign, namespace: " + b.namespace + "}, spec: {schedule: '@yearly', " +
		"jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}}}}")
	b.check(b.client.Create(t.Context(), foreign))
	b.check(b.client.Delete(t.Context(), b.get()))
	b.expect(v1alpha1.StateDeleting, vocabulary.ReasonDeletionBlocked)
	b.expectRequeue("the start of the watch")
	b.expect(v1alpha1.StateDeleting, vocabulary.ReasonDeletionBlocked)
	b.check(b.client.Delete(t.Context(), foreign))
	b.expectRequeue("the end of the cron job")
	b.untilGone()
}
