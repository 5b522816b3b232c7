// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
)

// render returns the objects of a Shop by kind and name, in the order of the templates.
func render(t *testing.T, spec shopv1alpha1.ShopSpec) (order []string, objects map[string]*unstructured.Unstructured) {
	t.Helper()
	generator, err := gotemplate.New(templates, "templates", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := generator.Generate(t.Context(), "market", "corner", &spec)
	if err != nil {
		t.Fatal(err)
	}
	objects = map[string]*unstructured.Unstructured{}
	for _, object := range rendered {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: content}
		key := u.GetKind() + " " + u.GetName()
		order, objects[key] = append(order, key), u
	}
	return order, objects
}

func spec() shopv1alpha1.ShopSpec {
	return shopv1alpha1.ShopSpec{
		Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: "corner-database", Discount: 10,
	}
}

func TestRenderedObjects(t *testing.T) {
	order, objects := render(t, spec())
	var got []string
	for _, key := range order {
		line := key
		annotations := objects[key].GetAnnotations()
		for _, annotation := range slices.Sorted(maps.Keys(annotations)) {
			line += fmt.Sprintf(" %s=%s", strings.TrimPrefix(annotation, name+"/"), annotations[annotation])
		}
		got = append(got, line)
	}
	want := []string{
		"Deployment corner-api",
		"Service corner-api",
		"PersistentVolumeClaim corner-carts",
		"PodDisruptionBudget corner-web",
		"Job corner-migration apply-order=-1 purge-order=-1 update-policy=recreate",
		"CustomResourceDefinition promotions.shop.example.com",
		"Promotion corner-of-the-week",
		"ConfigMap corner-settings apply-order=-1",
		"Deployment corner-web",
		"Service corner-web",
		"Deployment corner-worker",
		"Service corner-worker",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rendered objects (-want +got):\n%s", diff)
	}
}

func TestValuesReachTheObjects(t *testing.T) {
	_, objects := render(t, spec())
	deployment, job := objects["Deployment corner-web"], objects["Job corner-migration"]
	container := func(u *unstructured.Unstructured) map[string]any {
		containers, _, err := unstructured.NestedSlice(u.Object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("%s has %d containers: %v", u.GetName(), len(containers), err)
		}
		return containers[0].(map[string]any)
	}
	replicas, _, _ := unstructured.NestedFieldNoCopy(deployment.Object, "spec", "replicas")
	greeting, _, _ := unstructured.NestedString(objects["ConfigMap corner-settings"].Object, "data", "GREETING")
	got := []any{fmt.Sprint(replicas), container(deployment)["image"], container(deployment)["env"], container(job)["env"], greeting}
	password := []any{map[string]any{"name": "DATABASE_PASSWORD", "valueFrom": map[string]any{
		"secretKeyRef": map[string]any{"name": "corner-database", "key": "password"},
	}}}
	want := []any{"2", "registry.example.com/shop:1.0", password, password, "Welcome"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestGreetingRollsThePodsAndNothingElseDoes(t *testing.T) {
	annotation := func(change func(*shopv1alpha1.ShopSpec)) string {
		s := spec()
		change(&s)
		_, objects := render(t, s)
		value, found, err := unstructured.NestedString(objects["Deployment corner-web"].Object,
			"spec", "template", "metadata", "annotations", "shop.example.com/settings")
		if err != nil || !found || value == "" {
			t.Fatalf("the pod template has no annotation with the settings: %v", err)
		}
		return value
	}
	before := annotation(func(*shopv1alpha1.ShopSpec) {})
	if after := annotation(func(s *shopv1alpha1.ShopSpec) { s.Greeting = "Closed" }); after == before {
		t.Error("another greeting leaves the pod template as it was")
	}
	if after := annotation(func(s *shopv1alpha1.ShopSpec) { s.Replicas = 5; s.Discount = 50 }); after != before {
		t.Error("the annotation changes with values that are no settings")
	}
}

func TestCustomResourceDefinitionKeepsTheWholeStatus(t *testing.T) {
	data, err := os.ReadFile("config/crd/shop.example.com_shops.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		t.Fatal(err)
	}
	version := crd.Spec.Versions[0]
	if version.Subresources == nil || version.Subresources.Status == nil {
		t.Error("there is no status subresource")
	}
	status := version.Schema.OpenAPIV3Schema.Properties["status"]
	if status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
		t.Errorf("the status defaults to %v", status.Default)
	}
	var want, got [][]string
	for _, of := range []struct {
		schema apiextensionsv1.JSONSchemaProps
		typ    reflect.Type
	}{
		{status, reflect.TypeFor[component.Status]()},
		{status.Properties["inventory"], reflect.TypeFor[v1alpha1.Inventory]()},
		{*status.Properties["inventory"].Properties["items"].Items.Schema, reflect.TypeFor[v1alpha1.InventoryItem]()},
	} {
		want, got = append(want, fieldsOf(of.typ)), append(got, slices.Sorted(maps.Keys(of.schema.Properties)))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("fields of the status, of the inventory and of its items (-want +got):\n%s", diff)
	}
}

// fieldsOf are the names of the fields of a type in JSON.
func fieldsOf(typ reflect.Type) []string {
	var names []string
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
