// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// definition returns a CustomResourceDefinition of Foo, with annotations.
func definitionOf(scope, annotations string) string {
	return `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.example.com, annotations: {` + annotations + `}},
  spec: {group: example.com, names: {kind: Foo, plural: foos}, scope: ` + scope + `, versions: [{name: v1, served: true}, {name: v0, served: false}]}}`
}

const service = `{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v1.metrics.example.com}, spec: {group: metrics.example.com, version: v1}}`

func TestTypesThatTheComponentBrings(t *testing.T) {
	const foo = "\n---\n{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}}"
	tests := []struct {
		name, objects string
		managed       []v1alpha1.TypeInfo
		want          []string
	}{
		{"a namespaced type has its scope from the definition", definitionOf("Namespaced", "") + foo, nil, []string{"CustomResourceDefinition foos.example.com", "Foo shop/a"}},
		{"a cluster-scoped type has its scope from the definition", definitionOf("Cluster", "") + "\n---\n{apiVersion: example.com/v1, kind: Foo, metadata: {name: a, namespace: x}}", nil, []string{"CustomResourceDefinition foos.example.com", "Foo a"}},
		{"the definition may come after its instance", "{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}}\n---\n" + definitionOf("Namespaced", ""), nil, []string{"CustomResourceDefinition foos.example.com", "Foo shop/a"}},
		{"instances of an aggregated API stay where they are", service + "\n---\n{apiVersion: metrics.example.com/v1, kind: Bar, metadata: {name: a, namespace: x}}\n---\n{apiVersion: metrics.example.com/v1, kind: Bar, metadata: {name: b}}", nil, []string{"APIService v1.metrics.example.com", "Bar b", "Bar x/a"}},
		{"types of a pattern stay where they are", "{apiVersion: x.example.com/v1, kind: Foo, metadata: {name: a, namespace: x}}", []v1alpha1.TypeInfo{{Group: "*.example.com", Kind: "*"}}, []string{"Foo x/a"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(parse(t, tt.objects)...)
			in.Managed = tt.managed
			if diff := cmp.Diff(tt.want, keys(build(t, in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTypesThatTheComponentDoesNotBring(t *testing.T) {
	for name, objects := range map[string]string{
		"a version that the definition does not serve": definitionOf("Namespaced", "") + "\n---\n{apiVersion: example.com/v0, kind: Foo, metadata: {name: a}}",
		"a version that the definition does not know":  definitionOf("Namespaced", "") + "\n---\n{apiVersion: example.com/v2, kind: Foo, metadata: {name: a}}",
		"another kind of the group":                    definitionOf("Namespaced", "") + "\n---\n{apiVersion: example.com/v1, kind: Bar, metadata: {name: a}}",
		"another version of an aggregated API":         service + "\n---\n{apiVersion: metrics.example.com/v2, kind: Bar, metadata: {name: a}}",
	} {
		t.Run(name, func(t *testing.T) { expectMistake(t, input(parse(t, objects)...), "is not served by the cluster") })
	}
}

func TestADefinitionOfATypeIsNeverPurged(t *testing.T) {
	expectMistake(t, input(parse(t, definitionOf("Cluster", `shop.example.com/purge-order: "5"`))...), "a CustomResourceDefinition cannot be purged")
}

func TestRecreateIsNotForEverything(t *testing.T) {
	const annotations = `annotations: {shop.example.com/update-policy: recreate}`
	in := input(parse(t, `{apiVersion: v1, kind: Namespace, metadata: {name: a}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: b, `+annotations+`}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}}
---
{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}}
---
`+service+`
---
`+definitionOf("Cluster", "")+`
---
{apiVersion: batch/v1, kind: Job, metadata: {name: a}}`)...)
	in.Defaults.Update = v1alpha1.UpdatePolicyRecreate
	got := map[string]v1alpha1.UpdatePolicy{}
	for _, object := range build(t, in) {
		got[object.Key.String()] = object.Policies.Update
	}
	want := map[string]v1alpha1.UpdatePolicy{
		"Namespace a": "Replace", "Namespace b": "Recreate", "PersistentVolumeClaim shop/a": "Replace", "PersistentVolume a": "Replace",
		"APIService v1.metrics.example.com": "Replace", "CustomResourceDefinition foos.example.com": "Replace", "Job shop/a": "Recreate",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
