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

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{Cluster: true, AuditLog: true}))
}

// rendering is how the chart is rendered for a revision of a Shop.
func rendering(t *testing.T, revision int64, change func(*shopv1alpha1.ShopSpec)) manifeststest.Case {
	t.Helper()
	generator, err := helm.New(chart, "chart", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec := &shopv1alpha1.ShopSpec{ShopValues: shopv1alpha1.ShopValues{
		Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: "corner-database",
		Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
	}}
	change(spec)
	return manifeststest.Case{
		Generator: generator, Namespace: "market", Name: "corner", Parameters: spec,
		Context: manifests.Context{ReconcilerName: name, Revision: revision, Upgrade: revision > 1}.In(t.Context()),
	}
}

func unchanged(*shopv1alpha1.ShopSpec) {}

// closed makes a shop of values that could be taken for none.
func closed(s *shopv1alpha1.ShopSpec) {
	s.ShopValues = shopv1alpha1.ShopValues{Image: "registry.example.com/shop:1.0", DatabaseSecret: "corner-database"}
}

func TestTheChartRendersTheGoldenFiles(t *testing.T) {
	for file, c := range map[string]manifeststest.Case{
		"install": rendering(t, 1, unchanged),
		"upgrade": rendering(t, 2, unchanged),
		"closed":  rendering(t, 1, closed),
	} {
		t.Run(file, func(t *testing.T) {
			c.Golden(t, "testdata/"+file+".golden")
			c.Deterministic(t)
		})
	}
}

func TestAnAPIServerAcceptsWhatTheChartRenders(t *testing.T) {
	config := env.Shared(t).Config()
	for _, change := range []func(*shopv1alpha1.ShopSpec){unchanged, closed} {
		rendering(t, 1, change).Valid(t, config)
	}
}

func TestGreetingRollsThePodsAndNothingElseDoes(t *testing.T) {
	annotation := func(change func(*shopv1alpha1.ShopSpec)) string {
		objects := rendering(t, 1, change).Render(t)
		web := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind()+o.GetName() == "Deploymentcorner-web" })
		value, found, err := unstructured.NestedString(objects[web].Object,
			"spec", "template", "metadata", "annotations", "shop.example.com/settings")
		if err != nil || !found || value == "" {
			t.Fatalf("the pod template has no annotation with the settings: %v", err)
		}
		return value
	}
	before := annotation(unchanged)
	if after := annotation(func(s *shopv1alpha1.ShopSpec) { s.Greeting = "Closed" }); after == before {
		t.Error("another greeting leaves the pod template as it was")
	}
	if after := annotation(func(s *shopv1alpha1.ShopSpec) { s.Replicas = 5; s.Discount = 50 }); after != before {
		t.Error("the annotation changes with values that are no settings")
	}
}

func TestTheSchemaOfTheChartRefusesWrongValues(t *testing.T) {
	for _, test := range []struct {
		change func(*shopv1alpha1.ShopSpec)
		want   string
	}{
		{func(s *shopv1alpha1.ShopSpec) { s.Replicas = -1 }, "/replicas"},
		{func(s *shopv1alpha1.ShopSpec) { s.Discount = 101 }, "/discount"},
		{func(s *shopv1alpha1.ShopSpec) { s.DatabaseSecret = "" }, "/databaseSecret"},
	} {
		c := rendering(t, 1, test.change)
		_, err := manifests.Generate(c.Context, c.Generator, c.Namespace, c.Name, c.Parameters)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("want an error that names %s, got: %v", test.want, err)
		}
	}
}

// schema returns the schema of a Shop in its custom resource definition.
func schema(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
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
	return *version.Schema.OpenAPIV3Schema
}

func TestTheChartAndTheDefinitionHaveTheSameDefaults(t *testing.T) {
	data, err := chart.ReadFile("chart/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	delete(want, "databaseSecret") // a Shop has to name it
	got := map[string]any{}
	for field, property := range schema(t).Properties["spec"].Properties {
		if property.Default == nil {
			continue
		}
		var value any
		if err := yaml.Unmarshal(property.Default.Raw, &value); err != nil {
			t.Fatal(err)
		}
		got[field] = value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-chart +definition):\n%s", diff)
	}
}

func TestCustomResourceDefinitionKeepsThePatchesAndTheWholeStatus(t *testing.T) {
	shop := schema(t)
	spec, status := shop.Properties["spec"], shop.Properties["status"]
	if status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
		t.Errorf("the status defaults to %v", status.Default)
	}
	patch := *spec.Properties["patches"].Items.Schema
	for _, of := range []struct {
		schema apiextensionsv1.JSONSchemaProps
		typ    reflect.Type
	}{
		{patch, reflect.TypeFor[v1alpha1.Patch]()},
		{patch.Properties["target"], reflect.TypeFor[v1alpha1.PatchTarget]()},
		{*spec.Properties["images"].Items.Schema, reflect.TypeFor[v1alpha1.Image]()},
		{status, reflect.TypeFor[component.Status]()},
		{status.Properties["inventory"], reflect.TypeFor[v1alpha1.Inventory]()},
		{status.Properties["source"], reflect.TypeFor[v1alpha1.Source]()},
		{*status.Properties["history"].Items.Schema, reflect.TypeFor[v1alpha1.RevisionStatus]()},
	} {
		if diff := cmp.Diff(fieldsOf(of.typ), slices.Sorted(maps.Keys(of.schema.Properties))); diff != "" {
			t.Errorf("fields of %s (-want +got):\n%s", of.typ, diff)
		}
	}
	limits := fmt.Sprint(*spec.Properties["patches"].MaxItems, *patch.Properties["patch"].MinLength, *patch.Properties["patch"].MaxLength)
	if limits != "64 1 65536" {
		t.Errorf("the number of patches and the length of their texts are limited by %s", limits)
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
