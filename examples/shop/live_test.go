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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/test/env"
)

func TestTheHooksOfTheShopRunOncePerChangeAndOnceBeforeItsDeletion(t *testing.T) {
	b := newBed(t)
	b.check(b.client.Create(t.Context(), b.shop()))
	b.untilReady()
	b.ran("installation", map[string]int{"corner-migration": 1})

	b.change(func(s *shopv1alpha1.ShopSpec) { s.Replicas = 1 })
	b.untilReady()
	b.ran("change", map[string]int{"corner-migration": 2})

	// A repair is no change.
	settings := &corev1.ConfigMap{}
	settings.Namespace, settings.Name = b.namespace, "corner-settings"
	b.check(b.client.Delete(t.Context(), settings))
	b.until("the settings are back", func() error { return b.client.Get(t.Context(), client.ObjectKeyFromObject(settings), settings) })
	b.untilReady()

	b.delete()
	b.ran("repair and deletion", map[string]int{"corner-migration": 2, "corner-backup": 1})
	if saved, deleted := b.history.completed("corner-backup"), b.history.firstDeletion(); saved == 0 || deleted <= saved {
		t.Errorf("the carts were saved at version %d, the first object was deleted at version %d", saved, deleted)
	}
}

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
			if shop.Status.ObservedGeneration != shop.Generation || !conditions.IsStalled(conditions.For(shop, &shop.Status.Conditions)) || state != v1alpha1.StateError || reason != v1alpha1.ReasonSpecInvalid {
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
	b.ran("wrong patches", map[string]int{"corner-migration": 1})

	b.change(func(s *shopv1alpha1.ShopSpec) { s.Replicas, s.Patches = 2, nil })
	b.untilReady()
	b.ran("correct", map[string]int{"corner-migration": 2})
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
	b.ran("deletion", map[string]int{"corner-migration": 1, "corner-backup": 1})
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

func TestThePlanOfAShopNamesWhatAnEditChanges(t *testing.T) {
	b := newBed(t)
	b.check(b.client.Create(t.Context(), b.shop()))
	b.untilReady()
	edited := b.shop()
	edited.Spec.Replicas++
	edited.TypeMeta = metav1.TypeMeta{APIVersion: shopv1alpha1.GroupVersion.String(), Kind: "Shop"}
	text, err := yaml.Marshal(edited)
	b.check(err)
	plan := func(manifest string) (string, error) {
		var printed strings.Builder
		command := options().Command()
		command.SetArgs([]string{"plan", "-f", "-", "--kubeconfig", env.Shared(t).Kubeconfig()})
		command.SetIn(strings.NewReader(manifest))
		command.SetOut(&printed)
		err := command.ExecuteContext(t.Context())
		return printed.String(), err
	}
	wants := func(text string, err error, wanted ...string) {
		t.Helper()
		b.check(err)
		for _, want := range wanted {
			if !strings.Contains(text, want) {
				t.Errorf("the plan does not have %q:\n%s", want, text)
			}
		}
	}
	printed, err := plan(string(text))
	wants(printed, err, "Shop "+b.namespace+"/corner: revision 1 → 2", "corner-migration", "corner-web", "spec.replicas  2 → 3")
	// A Shop that does not exist gets its defaults, and may be the answer to a dry run.
	minimal := fmt.Sprintf("{apiVersion: %s, kind: Shop, metadata: {namespace: %s, name: fresh}, spec: {databaseSecret: fresh}}", edited.APIVersion, b.namespace)
	answered := &unstructured.Unstructured{}
	b.check(yaml.Unmarshal([]byte(minimal), &answered.Object))
	b.check(b.client.Create(t.Context(), answered, client.DryRunAll))
	asJSON, err := answered.MarshalJSON()
	b.check(err)
	for _, text := range []string{minimal, string(asJSON)} {
		printed, err := plan(text)
		wants(printed, err, "Shop "+b.namespace+"/fresh: revision 1, operator shop.example.com", "fresh-cache", "fresh-web")
	}
	if _, err := plan("kind: ["); err == nil {
		t.Error("there is no error about a file that is no YAML")
	}

	// The rights of the operator suffice to answer users who ask it.
	asked := &unstructured.Unstructured{}
	asked.SetGroupVersionKind(shopv1alpha1.GroupVersion.WithKind("Shop"))
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(edited), asked))
	b.check(unstructured.SetNestedField(asked.Object, name, "status", "reconciler"))
	changed := asked.DeepCopy()
	b.check(unstructured.SetNestedField(changed.Object, int64(3), "spec", "replicas"))
	answer, err := preview.Ask(t.Context(), b.client, preview.Question{Component: asked, Edited: changed, FieldOwner: "test"})
	wants(string(answer.Plan), err, `"spec.replicas","old":"2","new":"3"`)
	b.delete()
}
