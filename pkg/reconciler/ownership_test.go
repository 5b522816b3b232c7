// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// TestWhatExistsIsIgnored: it is neither written nor recorded, it counts as ready although
// it is not, what depends on it is written, and it survives the component.
func TestARefusedAdoptionSaysWhatHelpsAndDeletesNothing(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-merge", "recreate", "recreate-on-immutable"} {
		t.Run(policy, func(t *testing.T) {
			b := newBench(t)
			existing := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"},
				Immutable:  new(true), Data: map[string]string{"value": "theirs"},
			}
			if err := b.Create(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err := b.apply(config("a", "ours", "adoption-policy", "always", "update-policy", policy))
				if err == nil || strings.Contains(err.Error(), "recreate-on-immutable") ||
					!strings.Contains(err.Error(), "no policy deletes what is not ours: delete it yourself, or give the dependent object another name") {
					t.Errorf("got the error %v", err)
				}
			}
			if live := b.get("a"); live.UID != existing.UID || live.Data["value"] != "theirs" {
				t.Errorf("the object became %v", live)
			}
			if err := b.Delete(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			b.mustApply(config("a", "ours", "adoption-policy", "always", "update-policy", policy))
			if got := b.get("a").Data["value"]; got != "ours" {
				t.Errorf("value %q after the way out", got)
			}
		})
	}
}

func TestAnObjectWithAControllerBelongsToIt(t *testing.T) {
	b := newBench(t)
	web := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "web"}}
	if err := b.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	reference := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "web", UID: web.UID, Controller: new(true)}
	controlled := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a", OwnerReferences: []metav1.OwnerReference{reference}},
		Data:       map[string]string{"value": "theirs"},
	}
	if err := b.Create(t.Context(), controlled); err != nil {
		t.Fatal(err)
	}
	_, err := b.apply(config("a", "ours"), config("b", "1"))
	conflict, refused := errors.AsType[*reconciler.OwnerConflictError](err)
	if !refused || !strings.Contains(conflict.Error(), "belongs to its controller ConfigMap web") || b.get("a").Data["value"] != "theirs" {
		t.Fatalf("got %v", err)
	}

	taken := func(value string) client.Object { return config("a", value, "adoption-policy", "always") }
	outcome := b.mustApply(taken("ours"), config("b", "1"))
	if len(outcome.Notes) != 1 || outcome.Notes[0].Message != "adopted: it belonged to its controller ConfigMap web" {
		t.Errorf("notes %v", outcome.Notes)
	}
	// A controller that comes to an object of ours is a field of others.
	ours := b.get("b")
	ours.OwnerReferences = []metav1.OwnerReference{reference}
	if err := b.Update(t.Context(), ours, client.FieldOwner("others")); err != nil {
		t.Fatal(err)
	}
	if outcome = b.mustApply(taken("ours"), config("b", "1")); len(outcome.Steps)+len(outcome.Notes) > 0 {
		t.Errorf("steps %v, notes %v", outcome.Steps, outcome.Notes)
	}
	b.mustApply(taken("2"), config("b", "2"))
	for _, name := range []string{"a", "b"} {
		got := b.get(name)
		if diff := cmp.Diff([]metav1.OwnerReference{reference}, got.OwnerReferences); diff != "" || got.Data["value"] != "2" {
			t.Errorf("%s: value %q, references (-want +got):\n%s", name, got.Data["value"], diff)
		}
	}
	// A reference of our own manifest to the component is not written: the label and the annotation say the same.
	own, owner := config("c", "1"), b.owner()
	own.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.Group + "/v1", Kind: owner.Kind, Name: owner.Name, UID: owner.UID, Controller: new(true)}})
	b.mustApply(own, taken("2"), config("b", "2"))
	if made := b.get("c").OwnerReferences; len(made) > 0 {
		t.Errorf("references %v", made)
	}
}

func TestAnAdoptedObjectHasNoOwnershipMetadataOfItsFormerOwner(t *testing.T) {
	theirs := metav1.ObjectMeta{
		Name: "a",
		Labels: map[string]string{
			"their": "label", "other.example.com/owner-id": "id", "helm.toolkit.fluxcd.io/name": "web",
			"helm.toolkit.fluxcd.io/namespace": "flux", "applyset.kubernetes.io/part-of": "set", "kapp.k14s.io/app": "1",
			"kustomize.toolkit.fluxcd.io/name": "web", "kustomize.toolkit.fluxcd.io/namespace": "flux",
		},
		Annotations: map[string]string{
			"their": "annotation", "other.example.com/owner": "example.com/Shop/shop/web/1", "config.k8s.io/owning-inventory": "i",
			"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop", "kapp.k14s.io/identity": "1",
			"argocd.argoproj.io/tracking-id": "web:/ConfigMap:shop/a", "argocd.argoproj.io/installation-id": "1",
			"argocd.argoproj.io/hook": "kept",
		},
	}
	for _, update := range []string{"replace", "ssa-merge", "ssa-override"} {
		t.Run(update, func(t *testing.T) {
			b := newBench(t)
			existing := &corev1.ConfigMap{ObjectMeta: *theirs.DeepCopy(), Data: map[string]string{"value": "theirs"}}
			existing.Namespace = b.namespace
			if err := b.Create(t.Context(), existing); err != nil {
				t.Fatal(err)
			}
			ours := func(policies ...string) *unstructured.Unstructured {
				return config("a", "ours", append(policies, "update-policy", update)...)
			}
			b.mustApply(ours("adoption-policy", "always"), config("other", "1"))
			got := b.get("a")
			for _, values := range []map[string]string{got.Labels, got.Annotations} {
				for key := range values {
					if !strings.HasPrefix(key, engineName+"/") && key != "their" && key != "argocd.argoproj.io/hook" {
						t.Errorf("%s is left", key)
					}
				}
			}
			if kept := got.Labels["their"] != "" && got.Annotations["argocd.argoproj.io/hook"] != ""; kept != (update != "replace") {
				t.Errorf("labels that name no owner are kept: %t", kept)
			}
			for _, entry := range got.ManagedFields {
				if entry.Manager == engineName && entry.Operation == metav1.ManagedFieldsOperationUpdate && update != "replace" {
					t.Errorf("the takeover left an entry of a manager: %s", entry.FieldsV1)
				}
			}
			// A former owner that was not stopped puts its label back, and would delete the object by it.
			for range 2 {
				back := b.get("a")
				back.Labels["kustomize.toolkit.fluxcd.io/name"], back.Labels["kustomize.toolkit.fluxcd.io/namespace"] = "web", "flux"
				if err := b.Update(t.Context(), back, client.FieldOwner("kustomize-controller")); err != nil {
					t.Fatal(err)
				}
				outcome := b.mustApply(ours("adoption-policy", "always"), config("other", "1"))
				if again := b.get("a"); again.Labels["kustomize.toolkit.fluxcd.io/name"] != "" || again.Labels["kustomize.toolkit.fluxcd.io/namespace"] != "" {
					t.Errorf("the labels of the former owner came back: %v", again.Labels)
				}
				if notes := fmt.Sprint(outcome.Notes); !strings.Contains(notes, "adopted again: Flux Kustomization flux/web had put its label or annotation on it") {
					t.Errorf("notes %s", notes)
				}
			}
			// It is ours for good, whatever the policy says, and at rest.
			b.mustApply(ours(), config("other", "1"))
			before := b.get("a").ResourceVersion
			b.mustApply(ours(), config("other", "1"))
			if again := b.get("a").ResourceVersion; again != before {
				t.Errorf("it is written without need")
			}
			b.mustApply(config("other", "1"))
			if b.get("a") != nil {
				t.Error("it was dropped, and is still there")
			}
		})
	}
}

func TestARecordCopiedFromAnotherOwnerTouchesNothing(t *testing.T) {
	b := newBench(t)
	another := b.owner()
	another.Name, another.UID = "another", "2"
	var theirs v1alpha1.Inventory
	apply := func(objects ...client.Object) {
		t.Helper()
		outcome, err := b.engine.Apply(t.Context(), reconciler.ApplyRequest{
			Owner: another, Namespace: b.namespace, Objects: objects, Inventory: theirs, AllowEmpty: true,
			Record: func(_ context.Context, inventory v1alpha1.Inventory) error { theirs = inventory; return nil },
		})
		if theirs = outcome.Inventory; err != nil {
			t.Fatal(err)
		}
	}
	apply(config("left", "1", "delete-policy", "orphan"))
	copied := theirs.Items[0]
	if copied.Seal == "" {
		t.Fatalf("the record is not sealed: %+v", copied)
	}
	apply()
	invented := copied
	invented.Seal = "AAAAAAAAAAAAAAAAAAAAAA"
	for name, forged := range map[string]v1alpha1.InventoryItem{"copied": copied, "invented": invented} {
		forged.DeletePolicy = ""
		b.inventory = v1alpha1.Inventory{Format: 1, Items: []v1alpha1.InventoryItem{forged}}
		if outcome, err := b.delete(); err != nil || !outcome.Done() {
			t.Fatalf("%s: delete: %v, waiting for %v", name, err, outcome.Waiting)
		}
		if b.get("left") == nil {
			t.Fatalf("%s: what another owner orphaned was deleted", name)
		}
	}
}

func TestAnObjectWithoutOwnershipMetadataIsOursByTheSealOfItsRecord(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"), config("b", "1"))
	// A record without seals is sealed again without a write.
	for i := range b.inventory.Items {
		b.inventory.Items[i].Seal = ""
	}
	if outcome := b.mustApply(config("a", "1"), config("b", "1")); len(outcome.Steps) > 0 {
		t.Errorf("steps at rest: %v", outcome.Steps)
	}
	b.strip("a", true)
	b.strip("b", true)
	b.inventory.Items[1].Seal = ""
	if outcome, err := b.delete(); err != nil || !outcome.Done() {
		t.Fatalf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
	if b.get("a") != nil || b.get("b") == nil {
		t.Errorf("sealed: left %t; not sealed: left %t", b.get("a") != nil, b.get("b") != nil)
	}
}

// strip removes our label from an object, and with all also the annotation.
func (b *bench) strip(name string, all bool) {
	b.t.Helper()
	object := b.get(name)
	delete(object.Labels, engineName+"/owner-id")
	if all {
		delete(object.Annotations, engineName+"/owner")
	}
	if err := b.Update(b.t.Context(), object); err != nil {
		b.t.Fatal(err)
	}
}

// What the server answers and does not keep cannot be a dependent object, and holds
// up nothing if it was recorded by an earlier version.
func TestWhatCanOnlyBeCreatedIsRefusedAndHoldsUpNothing(t *testing.T) {
	b := newBench(t)
	object := func(apiVersion, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "a"}}}
	}
	kinds := []*unstructured.Unstructured{
		object("authorization.k8s.io/v1", "SubjectAccessReview"), object("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
		object("authorization.k8s.io/v1", "LocalSubjectAccessReview"), object("authentication.k8s.io/v1", "TokenReview"),
		object("v1", "Binding"), object("v1", "ComponentStatus"),
	}
	objects := []client.Object{config("a", "1")}
	for _, kind := range kinds {
		objects = append(objects, kind)
	}
	_, err := b.apply(objects...)
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid {
		t.Fatalf("got %v, want that the manifests are invalid", err)
	}
	for _, kind := range kinds {
		if want := "type " + kind.GetAPIVersion() + " " + kind.GetKind() + " is not for dependent objects"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if b.get("a") != nil || b.records > 0 {
		t.Error("something was written")
	}

	blocked := func() {
		for _, kind := range kinds {
			gvk := kind.GroupVersionKind()
			item := v1alpha1.InventoryItem{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: "a"}
			if kind.GetKind() == "LocalSubjectAccessReview" || kind.GetKind() == "Binding" {
				item.Namespace = b.namespace
			}
			b.inventory.Items = append(b.inventory.Items, item)
		}
	}
	b.mustApply(config("a", "1"))
	blocked()
	b.mustApply(config("a", "2"))
	if len(b.inventory.Items) != 1 {
		t.Errorf("recorded: %v", b.inventory.Items)
	}
	blocked()
	if outcome, err := b.delete(); err != nil || !outcome.Done() || b.get("a") != nil {
		t.Errorf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
}
