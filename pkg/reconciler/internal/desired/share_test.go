// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

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
	if diff := cmp.Diff(before, build(t, in)[0].Digest); diff != "" {
		t.Errorf("the digest of a shared type is another one: %s", diff)
	}
	once := input(parse(t, definitionOf("Namespaced", name+"/reconcile-policy: once")+foo)...)
	if once.Shared = in.Shared; ManifestDigest(build(t, once)) != ManifestDigest(build(t, in)) {
		t.Error("a change of a shared type starts a revision")
	}
	for _, manifest := range []string{definitionOf("Namespaced", name+"/shared: abc"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {" + name + "/shared: 'true'}}}"} {
		expectMistake(t, input(parse(t, manifest)...), name+"/shared is set by the operator only")
	}
}
