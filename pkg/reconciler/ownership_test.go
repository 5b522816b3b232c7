// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

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
			check.NoError(t, b.Create(t.Context(), existing))
			ours := config("a", "ours", "adoption-policy", "always", "update-policy", update)
			b.mustApply(ours)
			got := b.get("a")
			for _, values := range []map[string]string{got.Labels, got.Annotations} {
				for key := range values {
					if !strings.HasPrefix(key, engineName+"/") && key != "their" && key != "argocd.argoproj.io/hook" {
						t.Errorf("%s is left", key)
					}
				}
			}
			check.SameNamed(t, "labels that name no owner are kept", update != "replace", got.Labels["their"] != "" && got.Annotations["argocd.argoproj.io/hook"] != "")
			for _, entry := range got.ManagedFields {
				if entry.Manager == engineName && entry.Operation == metav1.ManagedFieldsOperationUpdate && update != "replace" {
					t.Errorf("the takeover left an entry of a manager: %s", entry.FieldsV1)
				}
			}
			if outcome := b.mustApply(ours); len(outcome.Steps)+len(outcome.Notes) > 0 {
				t.Errorf("at rest: steps %v, notes %v", outcome.Steps, outcome.Notes)
			}
		})
	}
}

// What the server answers and does not keep cannot be a dependent object, and holds
// up nothing if it was recorded by an earlier version.
func TestWhatCanOnlyBeCreatedIsRefusedAndHoldsUpNothing(t *testing.T) {
	b := newBench(t)
	objects := []client.Object{config("a", "1")}
	var recorded []v1alpha1.InventoryItem
	kinds := []string{
		"authorization.k8s.io/v1 SubjectAccessReview", "authorization.k8s.io/v1 SelfSubjectRulesReview", "authorization.k8s.io/v1 LocalSubjectAccessReview",
		"authentication.k8s.io/v1 TokenReview", "v1 Binding", "v1 ComponentStatus",
	}
	for _, kind := range kinds {
		version, name, _ := strings.Cut(kind, " ")
		object := parse(t, "{apiVersion: "+version+", kind: "+name+", metadata: {name: a}}")
		gvk := object.GroupVersionKind()
		item := v1alpha1.InventoryItem{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: "a"}
		if name == "LocalSubjectAccessReview" || name == "Binding" {
			item.Namespace = b.namespace
		}
		objects, recorded = append(objects, object), append(recorded, item)
	}
	_, err := b.apply(objects...)
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid {
		t.Fatalf("got %v, want that the manifests are invalid", err)
	}
	for _, kind := range kinds {
		if want := "type " + kind + " is not for dependent objects"; !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
	if b.get("a") != nil || b.records > 0 {
		t.Error("something was written")
	}
	b.inventory.Items = recorded
	b.mustApply(config("a", "1"))
	if len(b.inventory.Items) != 1 {
		t.Errorf("recorded: %v", b.inventory.Items)
	}
	b.inventory.Items = append(b.inventory.Items, recorded...)
	if outcome, err := b.delete(); err != nil || !outcome.Done() || b.get("a") != nil {
		t.Errorf("delete: %v, waiting for %v", err, outcome.Waiting)
	}
}
