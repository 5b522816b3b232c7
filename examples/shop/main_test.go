// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{Cluster: true})) }

// usual are the values of a Shop as most users want it.
var usual = shopv1alpha1.ShopValues{
	Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: "corner-database",
	Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
}

// rendering is how the chart is rendered for a revision of a Shop.
func rendering(t *testing.T, revision int64, change func(*shopv1alpha1.ShopSpec)) manifeststest.Case {
	t.Helper()
	generator := check.Must(helm.New(chart, "chart", helm.Options{}))(t)
	spec := &shopv1alpha1.ShopSpec{ShopValues: usual}
	change(spec)
	return manifeststest.Case{
		Generator: generator, Namespace: "market", Name: "corner", Parameters: component.ParametersOf(spec),
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
	data := check.Must(os.ReadFile("config/crd/shop.example.com_shops.yaml"))(t)
	var crd apiextensionsv1.CustomResourceDefinition
	check.NoError(t, yaml.UnmarshalStrict(data, &crd))
	version := crd.Spec.Versions[0]
	if version.Subresources == nil || version.Subresources.Status == nil {
		t.Error("there is no status subresource")
	}
	return *version.Schema.OpenAPIV3Schema
}

func TestTheChartAndTheDefinitionHaveTheSameDefaults(t *testing.T) {
	data := check.Must(chart.ReadFile("chart/values.yaml"))(t)
	var want map[string]any
	check.NoError(t, yaml.Unmarshal(data, &want))
	delete(want, "databaseSecret") // a Shop has to name it
	got := map[string]any{}
	for field, property := range schema(t).Properties["spec"].Properties {
		if property.Default == nil {
			continue
		}
		var value any
		check.NoError(t, yaml.Unmarshal(property.Default.Raw, &value))
		got[field] = value
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-chart +definition):\n%s", diff)
	}
}

func TestTheDefinitionLimitsPatches(t *testing.T) {
	shop := schema(t)
	if status := shop.Properties["status"]; status.Default == nil || string(status.Default.Raw) != `{"observedGeneration":-1}` {
		t.Errorf("the status defaults to %v", status.Default)
	}
	patches := shop.Properties["spec"].Properties["patches"]
	text, target := patches.Items.Schema.Properties["patch"], patches.Items.Schema.Properties["target"].Properties["name"]
	if limits := fmt.Sprint(*patches.MaxItems, *text.MinLength, *text.MaxLength, *target.MaxLength); limits != "64 1 65536 253" {
		t.Errorf("the number of patches, the length of their texts and that of the name of a target are limited by %s", limits)
	}
}
