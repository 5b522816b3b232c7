// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
)

// dozen generates twelve objects in three waves: a type and an instance of it,
// and things of several kinds. Version 2 changes all that carry the version,
// drops the objects named old and adds those named new.
var dozen = manifests.GeneratorFunc(func(_ context.Context, namespace, _ string, parameters corbeltypes.Unstructurable) ([]client.Object, error) {
	version, _ := parameters.ToUnstructured()["version"].(string)
	suffix := map[string]string{"1": "old", "2": "new"}[version]
	data := map[string]any{"data": map[string]any{"version": version}}
	return []client.Object{
		thing("v1", "ConfigMap", "first-a", "-1", data),
		thing("v1", "ConfigMap", "first-"+suffix, "-1", data),
		thing("v1", "Secret", "first-secret", "-1", map[string]any{"stringData": map[string]any{"version": version}}),
		thing("v1", "ServiceAccount", "first-account", "-1", nil),
		thing("v1", "ConfigMap", "second-a", "0", data),
		thing("v1", "ConfigMap", "second-"+suffix, "0", data),
		thing("v1", "Service", "second-service", "0", map[string]any{
			"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80), "name": "v" + version}}},
		}),
		dozenType(namespace),
		dozenInstance(namespace, version),
		thing("v1", "ConfigMap", "third-a", "5", data),
		thing("v1", "ConfigMap", "third-"+suffix, "5", data),
		thing("policy/v1", "PodDisruptionBudget", "third-budget", "5", map[string]any{
			"spec": map[string]any{"maxUnavailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"version": version}}},
		}),
	}, nil
})

// dozenRecorded is how many objects the inventory has.
const dozenRecorded = 12

// dozenNames are the objects of a version in the form of marked.
func dozenNames(namespace, version string) []string {
	suffix := map[string]string{"1": "old", "2": "new"}[version]
	in := func(resource, name string) string { return resource + " " + namespace + "/" + name }
	expected := []string{
		"customresourcedefinitions " + dozenPlural(namespace) + ".crash.e2e.corbel.run",
		in(dozenPlural(namespace), "instance"),
		in("poddisruptionbudgets", "third-budget"),
		in("secrets", "first-secret"),
		in("serviceaccounts", "first-account"),
		in("services", "second-service"),
	}
	for _, name := range []string{"first-a", "first-" + suffix, "second-a", "second-" + suffix, "third-a", "third-" + suffix} {
		expected = append(expected, in("configmaps", name))
	}
	slices.Sort(expected)
	return expected
}

func thing(apiVersion, kind, name, wave string, content map[string]any) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": apiVersion,
		"kind":       kind,
		"metadata": map[string]any{
			"name":        name,
			"annotations": map[string]any{reconcilerName + "/apply-order": wave},
		},
	}
	for key, value := range content {
		object[key] = value
	}
	return &unstructured.Unstructured{Object: object}
}

// dozenPlural names the type of one namespace's dozen, so that tests do not
// meet in a definition.
func dozenPlural(namespace string) string { return "crash" + letters(namespace) + "s" }

func letters(namespace string) string {
	var out []rune
	for _, r := range namespace {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			out = append(out, r)
		}
	}
	return string(out)
}

func dozenKind(namespace string) string { return "Crash" + letters(namespace) }

func dozenType(namespace string) *unstructured.Unstructured {
	plural, kind := dozenPlural(namespace), dozenKind(namespace)
	crd := thing("apiextensions.k8s.io/v1", "CustomResourceDefinition", plural+".crash.e2e.corbel.run", "0", map[string]any{
		"spec": map[string]any{
			"group": "crash.e2e.corbel.run",
			"scope": "Namespaced",
			"names": map[string]any{"plural": plural, "singular": "crash" + letters(namespace), "kind": kind, "listKind": kind + "List"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	})
	return crd
}

func dozenInstance(namespace, version string) *unstructured.Unstructured {
	return thing("crash.e2e.corbel.run/v1", dozenKind(namespace), "instance", "0", map[string]any{
		"spec": map[string]any{"version": version},
	})
}

// ownerOf is the text by which the objects of the fixture's Bundle are known.
func (f *fixture) ownerOf() string { return "/" + f.namespace + "/" }

// checkVersion expects all that carries a version to have the given one.
func (f *fixture) checkVersion(t *testing.T, version string) {
	t.Helper()
	configs := &corev1.ConfigMapList{}
	if err := f.List(t.Context(), configs, client.InNamespace(f.namespace), client.HasLabels{reconcilerName + "/owner-id"}); err != nil {
		t.Fatal(err)
	}
	for _, config := range configs.Items {
		if got := config.Data["version"]; got != version {
			t.Errorf("ConfigMap %s has version %s, want %s", config.Name, got, version)
		}
	}
	instance := dozenInstance(f.namespace, "")
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: "instance"}, instance); err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(instance.Object, "spec", "version"); got != version {
		t.Errorf("the instance has version %s, want %s", got, version)
	}
}
