// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
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
			check.Equal(t, tt.want, keys(build(t, in)))
		})
	}
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
	check.Equal(t, want, got)
}

// TestADefinitionIsSharedIfItsContentIsThatOfTheGenerator builds definitions of a type that the generator shares.
func TestADefinitionIsSharedIfItsContentIsThatOfTheGenerator(t *testing.T) {
	generator := parse(t, definitionOf("Namespaced", ""))[0].(*unstructured.Unstructured)
	generator.SetNamespace("ignored")
	const foo = "\n---\n{apiVersion: example.com/v1, kind: Foo, metadata: {name: a}}"
	tests := []struct {
		name, object  string
		stored        bool
		content       *unstructured.Unstructured
		shared, whole bool
	}{
		{"the same content", definitionOf("Namespaced", ""), false, generator, true, false},
		{"the same content, to be created once", definitionOf("Namespaced", name+"/reconcile-policy: once"), false, generator, true, false},
		{"another content", definitionOf("Cluster", ""), false, generator, false, true},
		{"another content of a stored set", definitionOf("Cluster", ""), true, generator, true, false},
		{"a content that each component renders", definitionOf("Cluster", ""), false, nil, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			in := input(parse(t, test.object+foo)...)
			in.Stored, in.Shared = test.stored, map[string]*SharedType{"foos.example.com": NewSharedType(name, test.content, digest.Hasher{})}
			got := build(t, in)[0]
			_, owned := got.Manifest.GetLabels()[name+"/owner-id"]
			_, whole, _ := unstructured.NestedSlice(got.Manifest.Object, "spec", "versions")
			if got.Shared != test.shared || owned == test.shared || whole != test.whole || len(got.Defines) != 1 {
				t.Errorf("shared %t, owned %t, whole %t, defines %v", got.Shared, owned, whole, got.Defines)
			}
			pack, ok := NewPack([]plan.Desired{got})
			if !ok || pack.Objects()[0].Shared != test.shared {
				t.Error("it is another one after it was packed")
			}
		})
	}
	in := input(parse(t, definitionOf("Namespaced", "")+foo)...)
	before := build(t, in)[0].Digest
	in.Shared = map[string]*SharedType{"foos.example.com": NewSharedType(name, generator, digest.Hasher{})}
	check.EqualNamed(t, "the digest of a shared type is another one", before, build(t, in)[0].Digest)
	once := input(parse(t, definitionOf("Namespaced", name+"/reconcile-policy: once")+foo)...)
	if once.Shared = in.Shared; ManifestDigest(build(t, once)) != ManifestDigest(build(t, in)) {
		t.Error("a change of a shared type starts a revision")
	}
	for _, manifest := range []string{definitionOf("Namespaced", name+"/shared: abc"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {" + name + "/shared: 'true'}}}"} {
		expectMistake(t, input(parse(t, manifest)...), name+"/shared is set by the operator only")
	}
}
