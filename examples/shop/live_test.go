// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
)

func TestAUserPatchesADependentThroughTheShop(t *testing.T) {
	b := newBed(t)
	b.check(b.client.Create(t.Context(), b.shop()))
	b.untilReady()
	cache := func() string {
		t.Helper()
		d := &appsv1.Deployment{}
		b.check(b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "corner-cache"}, d))
		container := d.Spec.Template.Spec.Containers[0]
		return fmt.Sprintf("%s with memory %s, tier %q", container.Image, container.Resources.Limits.Memory(), d.Labels["tier"])
	}
	want := func(want string) {
		t.Helper()
		if got := cache(); got != want {
			t.Errorf("the cache is %s, want %s", got, want)
		}
	}
	want(`registry.example.com/cache:7.2 with memory 0, tier ""`)

	b.change(func(s *shopv1alpha1.ShopSpec) {
		s.Patches = []v1alpha1.Patch{
			{Patch: memory("corner-cache")},
			{Patch: `[{op: add, path: /metadata/labels/tier, value: back}]`, Target: &v1alpha1.PatchTarget{Kind: "Deployment", Name: ".*-cache"}},
			// Neither is a mistake: no object has the name, and the server drops the field.
			{Patch: "{metadata: {labels: {tier: none}}}", Target: &v1alpha1.PatchTarget{Name: "cache"}},
			{Patch: "{spec: {replicsa: 3}}", Target: &v1alpha1.PatchTarget{Kind: "Deployment"}},
		}
		s.Images = []v1alpha1.Image{{Name: "registry.example.com/cache", NewTag: "7.4"}}
	})
	b.untilReady()
	want(`registry.example.com/cache:7.4 with memory 64Mi, tier "back"`)

	b.change(func(s *shopv1alpha1.ShopSpec) { s.Patches, s.Images = nil, nil })
	b.untilReady()
	want(`registry.example.com/cache:7.2 with memory 0, tier ""`)
}

// memory is a patch that limits the memory of a cache.
func memory(name string) string {
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s},
		spec: {template: {spec: {containers: [{name: cache, resources: {limits: {memory: 64Mi}}}]}}}}`, name)
}

func TestAPatchThatCannotBeAppliedStallsTheShopAndIsNamed(t *testing.T) {
	b := newBed(t)
	b.check(b.client.Create(t.Context(), b.shop()))
	b.untilReady()
	before := b.generations()
	for _, test := range []struct {
		patches []v1alpha1.Patch
		want    []string
	}{
		{[]v1alpha1.Patch{{Patch: memory("corner-cache")}, {Patch: memory("corner-cahce")}},
			[]string{"patch 2 of 2: there is no Deployment corner-cahce of apps/v1 to patch"}},
		{[]v1alpha1.Patch{{Patch: "{"}, {Patch: "[{op: add, path: /spec/replicas, value: 9}]"}},
			[]string{"patch 1 of 2: line 1: ", "patch 2 of 2: JSON patch operations need a target"}},
		{[]v1alpha1.Patch{{Patch: "[{op: remove, path: /spec/paused}]", Target: &v1alpha1.PatchTarget{Kind: "Deployment", Name: ".*-web"}}},
			[]string{"patch 1 of 1: Deployment corner-web: "}},
		{[]v1alpha1.Patch{{Patch: "[{op: add, path: /metadata/namespace, value: kube-system}]", Target: &v1alpha1.PatchTarget{Kind: "Deployment"}}},
			[]string{"Deployment corner-api: a patch cannot make another object of it", "Deployment corner-web: a patch cannot make another object of it"}},
	} {
		b.change(func(s *shopv1alpha1.ShopSpec) { s.Replicas, s.Patches = 9, test.patches })
		b.until("the Shop is stalled", func() error {
			shop := b.get()
			state, reason, message := shop.Status.GetState()
			if shop.Status.ObservedGeneration != shop.Generation || !conditions.IsStalled(conditions.For(shop, &shop.Status.Conditions)) || state != v1alpha1.StateError || reason != "SpecInvalid" {
				return fmt.Errorf("generation %d, observed %d, %s, %s: %s", shop.Generation, shop.Status.ObservedGeneration, state, reason, message)
			}
			for _, part := range test.want {
				if strings.Count(message, part) != 1 {
					return fmt.Errorf("the message does not say %q once: %s", part, message)
				}
			}
			return nil
		})
		b.checkConditions()
	}
	// Of a spec that is wrong nothing is done, also not what is right in it.
	if diff := cmp.Diff(before, b.generations()); diff != "" {
		t.Errorf("generations of the dependents (-before +after):\n%s", diff)
	}

	b.change(func(s *shopv1alpha1.ShopSpec) { s.Replicas, s.Patches = 2, nil })
	b.untilReady()
}

func TestAPatchThatTheServerRefusesIsAnErrorThatNamesTheObjectAndTheField(t *testing.T) {
	b := newBed(t)
	b.check(b.client.Create(t.Context(), b.shop()))
	b.untilReady()
	b.change(func(s *shopv1alpha1.ShopSpec) {
		s.Patches = []v1alpha1.Patch{{Patch: "{spec: {replicas: -3}}", Target: &v1alpha1.PatchTarget{Kind: "Deployment", Name: "corner-cache"}}}
	})
	b.untilSaid("Deployment "+b.namespace+"/corner-cache: ", "spec.replicas: Invalid value: -3")
	b.change(func(s *shopv1alpha1.ShopSpec) { s.Patches = nil })
	b.untilReady()
}

func TestADeletionWithAWrongPatchSaysTheWayOutAndGoesOnWhenItIsCorrected(t *testing.T) {
	b := newBed(t)
	b.check(b.client.Create(t.Context(), b.shop()))
	b.untilReady()
	b.change(func(s *shopv1alpha1.ShopSpec) { s.Patches = []v1alpha1.Patch{{Patch: "{"}} })
	b.check(b.client.Delete(t.Context(), b.shop()))
	b.untilSaid("patch 1 of 1", `shop.example.com/skip-delete-hooks: "true"`)
	b.change(func(s *shopv1alpha1.ShopSpec) { s.Patches = nil })
	b.delete()
}

func TestTheAPIServerRefusesPatchesThatTheDefinitionExcludes(t *testing.T) {
	b := newBed(t)
	long := strings.Repeat("x", 65537)
	for _, test := range []struct {
		patches []v1alpha1.Patch
		want    string
	}{
		{[]v1alpha1.Patch{{Patch: ""}}, "spec.patches[0].patch"},
		{[]v1alpha1.Patch{{Patch: "{}"}, {Patch: long}}, "spec.patches[1].patch"},
		{[]v1alpha1.Patch{{Patch: "{}", Target: &v1alpha1.PatchTarget{Name: long[:254]}}}, "spec.patches[0].target.name"},
		{slices.Repeat([]v1alpha1.Patch{{Patch: "{}"}}, 65), "spec.patches: Too many"},
	} {
		shop := b.shop()
		shop.Spec.Patches = test.patches
		if err := b.client.Create(t.Context(), shop, client.DryRunAll); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("want %s refused, got: %.300v", test.want, err)
		}
	}
}
