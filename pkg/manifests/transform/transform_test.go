// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestMistakesInPatchesAreFoundAtOnce(t *testing.T) {
	all := &v1alpha1.PatchTarget{}
	for want, patch := range map[string]v1alpha1.Patch{
		"it is empty":                                            {Patch: "# nothing\n"},
		"line 2: ":                                               {Patch: "a: 1\nb: [", Target: all},
		"want a merge patch or a list":                           {Patch: "5", Target: all},
		"JSON patch operations need a target":                    {Patch: "[{op: remove, path: /a}]"},
		"needs apiVersion, kind and metadata.name":               {Patch: "{kind: Service, metadata: {name: a}}"},
		"a patch with a target must be one document":             {Patch: "a: 1\n---\nb: 2", Target: all},
		"JSON patch operations must be one list":                 {Patch: "[]\n---\n[]", Target: all},
		`operation 1 of 1: op "merge", want add`:                 {Patch: "[{op: merge, path: /a}]", Target: all},
		"operation 1 of 1: add needs a value":                    {Patch: "[{op: add, path: /a}]", Target: all},
		"operation 1 of 1: copy needs from":                      {Patch: "[{op: copy, path: /a}]", Target: all},
		"operation 1 of 1: remove needs a path below the object": {Patch: "[{op: remove}]", Target: all},
		"target: name: ":                                         {Patch: "a: 1", Target: &v1alpha1.PatchTarget{Name: "["}},
		"target: labelSelector: ":                                {Patch: "a: 1", Target: &v1alpha1.PatchTarget{LabelSelector: "a in"}},
		"it has more than 1000 operations":                       {Patch: strings.Repeat("- {op: remove, path: /a}\n", 1001), Target: all},
		"it is longer than 1048576 bytes":                        {Patch: strings.Repeat("#", 1<<20+1), Target: all},
		"the aliases of the document expand to more":             {Patch: "a: &a [x, x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\ne: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: [*e, *e]", Target: all},
	} {
		_, err := transform.Patches([]v1alpha1.Patch{patch, {}}, []v1alpha1.Image{{NewTag: "1"}})
		for _, part := range []string{"patch 1 of 2: ", want, "patch 2 of 2: it is empty", "image 1 of 1: it has no name"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("got the error %v, want %q", err, part)
			}
		}
	}
}

func TestNoPatchMakesAnotherObjectOfOne(t *testing.T) {
	thing := &v1alpha1.PatchTarget{Kind: "Thing"}
	for _, operation := range []string{
		"{op: replace, path: /apiVersion, value: rbac.authorization.k8s.io/v1}", "{op: replace, path: /kind, value: ClusterRoleBinding}",
		"{op: replace, path: /metadata/name, value: other}", "{op: add, path: /metadata/namespace, value: kube-system}",
		"{op: replace, path: /metadata, value: {}}", "{op: copy, from: /spec, path: /metadata}", "{op: remove, path: /kind}",
	} {
		_, err := patched(t, []v1alpha1.Patch{{Patch: "[" + operation + "]", Target: thing}}, nil)
		if err == nil || !strings.Contains(err.Error(), "patch 1 of 1: Thing t: a patch cannot make another object of it") {
			t.Errorf("%s: got the error %v", operation, err)
		}
	}
	for _, same := range []v1alpha1.Patch{
		{Target: thing, Patch: "{apiVersion: v2, kind: Other, metadata: {name: other, namespace: kube-system}}"},
		{Target: thing, Patch: "[{op: replace, path: /metadata/name, value: t}, {op: add, path: /metadata/namespace, value: default}]"},
	} {
		objects, err := patched(t, []v1alpha1.Patch{same}, nil)
		if err != nil {
			t.Fatal(err)
		}
		metadata, _ := objects["Thing"].(map[string]any)["metadata"].(map[string]any)
		if namespace, there := metadata["namespace"]; metadata["name"] != "t" || there && namespace != "default" {
			t.Errorf("%s leaves %v", same.Patch, objects)
		}
	}
}

func TestPatchesDoNotShareValuesBetweenObjects(t *testing.T) {
	transformer, err := transform.Patches([]v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{}, Patch: "metadata: {annotations: {a: b}}"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := transformer.TransformObjects("default", "app", []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, decode(t, resources)[2],
	})
	if err != nil {
		t.Fatal(err)
	}
	objects[0].SetAnnotations(map[string]string{"a": "changed"})
	if got := objects[1].GetAnnotations(); got["a"] != "b" || got["team"] != "x" {
		t.Errorf("got %v", got)
	}
}

func TestExpressionsChangeObjects(t *testing.T) {
	tests := []struct {
		name, expression string
		want             map[string]any
		err              string
	}{
		{name: "a map is merged", expression: `{"spec": {"map": {"a": self.spec.map.a + 1, "b": null}, "by": release.namespace + "/" + release.name, "half": 0.5, "on": true}}`,
			want: map[string]any{"list": []any{map[string]any{"name": "a"}, map[string]any{"name": "b"}}, "map": map[string]any{"a": int64(2)}, "containers": []any{map[string]any{"image": "side"}},
				"by": "default/app", "half": 0.5, "on": true}},
		{name: "a list holds operations", expression: `self.spec.list.map(i, i.name) == ["a", "b"] ? [{"op": "remove", "path": "/spec/list"}, {"op": "remove", "path": "/spec/containers"}] : []`,
			want: map[string]any{"map": map[string]any{"a": int64(1), "b": int64(2)}}},
		{name: "a field that is not there", expression: `{"spec": self.spec.nothing}`, err: "Thing t: expression: no such key: nothing"},
		{name: "another type", expression: `"text"`, err: "the expression gives string, want a map"},
		{name: "keys that are no strings", expression: `{1: 2}`, err: "a key of type int, want strings"},
		{name: "values that objects cannot hold", expression: `{"a": timestamp("2020-01-01T00:00:00Z")}`, err: "which an object cannot hold"},
		{name: "numbers that JSON cannot hold", expression: `{"a": 1.0 / 0.0}`, err: "a number that JSON cannot hold"},
		{name: "no name left", expression: `{"metadata": {"name": null}}`, err: "metadata.name must stay"},
		{name: "much work", expression: "{'a': [" + strings.Repeat("1,", 999) + "1].map(a, [" + strings.Repeat("1,", 999) + "1].map(b, [1, 2, 3].map(c, c)))}", err: "the expression takes too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			expression, err := transform.CEL(test.expression, &v1alpha1.PatchTarget{Kind: "Thing"})
			if err != nil {
				t.Fatal(err)
			}
			objects, err := expression.TransformObjects("default", "app", decode(t, resources))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got the error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, contentOf(objects[2])["spec"]); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMistakesInExpressionsAreFoundAtOnce(t *testing.T) {
	for want, expression := range map[string]string{"line 1, character 6: ": "self.(", "undeclared reference to 'env'": "env('HOME')", "size": strings.Repeat("1+", 20_000) + "1"} {
		if _, err := transform.CEL(expression, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %.300v, want %q", err, want)
		}
	}
}

func TestParametersAreNotChangedInPlace(t *testing.T) {
	operations, err := transform.JSONPatch("[{op: add, path: /a/b, value: 2}, {op: add, path: /c, value: x}]")
	if err != nil {
		t.Fatal(err)
	}
	expression, err := transform.CEL(`{"a": {"b": 2}, "c": "x"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, transformer := range map[string]manifests.ParameterTransformer{"operations": operations, "expression": expression} {
		given := types.UnstructurableMap{"a": map[string]any{"b": 1}}
		changed, err := transformer.TransformParameters("default", "app", given)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"a": map[string]any{"b": int64(2)}, "c": "x"}, changed.ToUnstructured()); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if diff := cmp.Diff(types.UnstructurableMap{"a": map[string]any{"b": 1}}, given); diff != "" {
			t.Errorf("%s: -given before +after:\n%s", name, diff)
		}
	}
}

func TestSubstitutionCannotChangeTheStructure(t *testing.T) {
	transformer, err := transform.Substitute(map[string]string{"A": "1\nb: 2", "N": "new"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	given := decode(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${N}\", labels: {\"${N}\": \"${N}\"}}\ndata: {a: \"x ${A}\", other: \"${B} $N ${N:-x} $${N}\"}\n")
	objects, err := transformer.TransformObjects("default", "app", given)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "${N}", "labels": map[string]any{"${N}": "new"}},
		"data": map[string]any{"a": "x 1\nb: 2", "other": "${B} $N ${N:-x} ${N}"},
	}
	if diff := cmp.Diff(want, contentOf(objects[0])); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, err := transform.Substitute(map[string]string{"a-b": ""}, nil); err == nil {
		t.Error("a name that cannot occur is accepted")
	}
}
