// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
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
		objects := check.Must(patched(t, []v1alpha1.Patch{same}, nil))(t)
		metadata, _ := objects["Thing"].(map[string]any)["metadata"].(map[string]any)
		if namespace, there := metadata["namespace"]; metadata["name"] != "t" || there && namespace != "default" {
			t.Errorf("%s leaves %v", same.Patch, objects)
		}
	}
}

func TestPatchesDoNotShareValuesBetweenObjects(t *testing.T) {
	transformer := check.Must(transform.Patches([]v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{}, Patch: "metadata: {annotations: {a: b}}"}}, nil))(t)
	objects := check.Must(transformer.TransformObjects("default", "app", []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, decode(t, resources)[2],
	}))(t)
	objects[0].SetAnnotations(map[string]string{"a": "changed"})
	if got := objects[1].GetAnnotations(); got["a"] != "b" || got["team"] != "x" {
		t.Errorf("got %v", got)
	}
}

func TestExpressionsChangeObjects(t *testing.T) {
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			expression := check.Must(transform.CEL(test.expression, &v1alpha1.PatchTarget{Kind: "Thing"}))(t)
			objects, err := expression.TransformObjects("default", "app", decode(t, resources))
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("got the error %v, want %q", err, test.err)
				}
				return
			}
			check.NoError(t, err)
			check.Equal(t, test.want, contentOf(objects[2])["spec"])
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
	operations := check.Must(transform.JSONPatch("[{op: add, path: /a/b, value: 2}, {op: add, path: /c, value: x}]"))(t)
	expression := check.Must(transform.CEL(`{"a": {"b": 2}, "c": "x"}`, nil))(t)
	for name, transformer := range map[string]manifests.ParameterTransformer{"operations": operations, "expression": expression} {
		given := types.UnstructurableMap{"a": map[string]any{"b": 1}}
		changed := check.Must(transformer.TransformParameters("default", "app", given))(t)
		check.EqualNamed(t, name, map[string]any{"a": map[string]any{"b": int64(2)}, "c": "x"}, changed.ToUnstructured())
		if diff := cmp.Diff(types.UnstructurableMap{"a": map[string]any{"b": 1}}, given); diff != "" {
			t.Errorf("%s: -given before +after:\n%s", name, diff)
		}
	}
}

func TestAPatchGivesWholeNumbersTheTypeThatTemplatesCompare(t *testing.T) {
	operations := check.Must(transform.JSONPatch("[{op: add, path: /c, value: 3}]"))(t)
	changed := check.Must(operations.TransformParameters("default", "app", types.UnstructurableMap{"a": float64(2), "b": 0.5}))(t)
	check.Equal(t, map[string]any{"a": int64(2), "b": 0.5, "c": int64(3)}, changed.ToUnstructured())
}

func TestSubstitutionCannotChangeTheStructure(t *testing.T) {
	transformer := check.Must(transform.Substitute(map[string]string{"A": "1\nb: 2", "N": "new"}, nil))(t)
	given := decode(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"${N}\", labels: {\"${N}\": \"${N}\"}}\ndata: {a: \"x ${A}\", other: \"${B} $N ${N:-x} $${N}\"}\n")
	objects := check.Must(transformer.TransformObjects("default", "app", given))(t)
	want := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "${N}", "labels": map[string]any{"${N}": "new"}},
		"data": map[string]any{"a": "x 1\nb: 2", "other": "${B} $N ${N:-x} ${N}"},
	}
	check.Equal(t, want, contentOf(objects[0]))
	if _, err := transform.Substitute(map[string]string{"a-b": ""}, nil); err == nil {
		t.Error("a name that cannot occur is accepted")
	}
}

const resources = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: init, image: "registry.example:5000/init:1"}
      containers:
      - name: web
        image: registry.example/web:1.0
        ports: [{containerPort: 80}, {containerPort: 81}]
        env: [{name: A, value: "1"}, {name: B, value: "2"}]
        args: [a, b]
      - {name: side, image: side}
      tolerations: [{key: a}, {key: b}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  ports: [{port: 80, name: http}, {port: 443, name: https}]
---
apiVersion: example.org/v1
kind: Thing
metadata: {name: t, annotations: {team: x}}
spec: {list: [{name: a}, {name: b}], map: {a: 1, b: 2}, containers: [{image: side}]}
`

// What the patches and images of a component do is what kustomize does.
func TestPatchesEqualThoseOfKustomize(t *testing.T) {
	deployment := &v1alpha1.PatchTarget{Kind: "Deployment"}
	for _, test := range []struct {
		name    string
		patches []v1alpha1.Patch
		images  []v1alpha1.Image
	}{
		{name: "lists are merged by their keys", patches: []v1alpha1.Patch{{Target: deployment, Patch: `
spec:
  template:
    spec:
      containers:
      - name: web
        env: [{name: B, value: "3"}, {name: C, value: "4"}]
        ports: [{containerPort: 81, name: admin}]
        args: [c]
      - {name: side, $patch: delete}
      tolerations: [{key: c}]
metadata: {name: ignored}
apiVersion: apps/v1
kind: Deployment`}}},
		{name: "null takes away", patches: []v1alpha1.Patch{{Patch: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, labels: null}, spec: {replicas: null}}"}}},
		{name: "an object with a namespace", patches: []v1alpha1.Patch{{Patch: "{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {type: NodePort, ports: [{port: 80, nodePort: 30000}]}}"}}},
		{name: "an object is deleted", patches: []v1alpha1.Patch{{Patch: "{$patch: delete, apiVersion: example.org/v1, kind: Thing, metadata: {name: t}}"}}},
		{name: "an object of an unknown type", patches: []v1alpha1.Patch{{Patch: "{apiVersion: example.org/v1, kind: Thing, metadata: {name: t}, spec: {list: [{name: c}], map: {b: null, c: {d: 1}}}}"}}},
		{name: "operations", patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Serv.*|Thing", Name: "web|t"}, Patch: "- {op: add, path: /metadata/labels, value: {a: b}}\n- {op: test, path: /kind, value: Service}"}}},
		{name: "operations in JSON", patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Group: "apps"}, Patch: `[{"op":"replace","path":"/spec/template/spec/containers/1/image","value":"x"},{"op":"remove","path":"/spec/replicas"}]`}}},
		{name: "selectors", patches: []v1alpha1.Patch{
			{Target: &v1alpha1.PatchTarget{LabelSelector: "app=web"}, Patch: "- {op: add, path: /metadata/annotations, value: {by: label}}"},
			{Target: &v1alpha1.PatchTarget{AnnotationSelector: "team in (x,y)"}, Patch: "- {op: add, path: /spec/by, value: annotation}"},
			{Target: &v1alpha1.PatchTarget{Namespace: "shop", Version: "v1"}, Patch: "- {op: add, path: /spec/by, value: namespace}"},
			{Target: &v1alpha1.PatchTarget{Name: "absent"}, Patch: "- {op: add, path: /spec/by, value: absent}"},
		}},
		{name: "every operation on lists and maps", patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: `
- {op: add, path: /spec/list/-, value: {name: z}}
- {op: add, path: /spec/list/0, value: {name: first, nested: {list: [1, 2]}}}
- {op: add, path: /spec/list/-1, value: {name: last}}
- {op: replace, path: /spec/list/-2, value: {name: before}}
- {op: remove, path: /spec/list/1}
- {op: copy, from: /spec/list/0, path: /spec/copied}
- {op: add, path: /spec/copied/nested/list/1, value: x}
- {op: move, from: /spec/list/0/nested/list/1, path: /spec/map/c}
- {op: move, from: /spec/containers, path: /spec/map/containers}
- {op: add, path: /metadata/annotations/example.com~1a~0b, value: "1"}
- {op: test, path: /metadata/annotations/example.com~1a~0b, value: "1"}
- {op: test, path: /spec/copied/nested/list, value: [1, x, 2]}
- {op: test, path: /spec/nothing, value: null}
- {op: add, path: /spec/none, value: null}
- {op: replace, path: /spec/none, value: {a: 1.5}}
- {op: remove, path: /spec/map/a}`}}},
		{name: "images", images: []v1alpha1.Image{
			{Name: "registry.example/web", NewTag: "2.0"}, {Name: "side", NewName: "other:5000/side", Digest: "sha256:abc"},
			{Name: "registry.example:5000/init", NewName: "init", NewTag: "2", Digest: "sha256:def"}, {Name: "web", NewTag: "no"},
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			want, wantErr := withKustomize(t, test.patches, test.images)
			got, err := patched(t, test.patches, test.images)
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("kustomize: %v; here: %v", wantErr, err)
			}
			// New entries of merged lists stand first in kustomize, and last in
			// kubectl and here.
			anyOrder := cmpopts.SortSlices(func(a, b any) bool { return fmt.Sprint(a) < fmt.Sprint(b) })
			if diff := cmp.Diff(want, got, anyOrder); diff != "" {
				t.Errorf("-kustomize +here:\n%s", diff)
			}
		})
	}
}

// What kustomize refuses is refused here, and the message says which part of the path is missing.
// RFC 6902 also refuses to replace what does not exist.
func TestOperationsThatCannotBeAppliedNameWhatIsMissing(t *testing.T) {
	for operation, want := range map[string]string{
		`{op: add, path: /spec/a/b/c, value: 1}`:           "operation 2 of 2: add /spec/a/b/c: /spec/a does not exist; add it first",
		`{op: add, path: /spec/list/7/x, value: 1}`:        "add /spec/list/7/x: /spec/list/7 does not exist; add it first",
		`{op: add, path: /spec/list/7, value: 1}`:          "add /spec/list/7: /spec/list/7 does not exist: the list has 2 elements",
		`{op: add, path: /spec/list/x, value: 1}`:          "/spec/list/x does not exist: the list has 2 elements",
		`{op: add, path: /kind/a, value: 1}`:               "/kind is neither a map nor a list",
		`{op: replace, path: /spec/a~1b, value: 1}`:        "replace /spec/a~1b: /spec/a~1b does not exist",
		`{op: replace, path: /spec/list/-, value: 1}`:      "/spec/list/- does not exist",
		`{op: remove, path: /spec/list/2}`:                 "/spec/list/2 does not exist: the list has 2 elements",
		`{op: remove, path: /spec/a}`:                      "remove /spec/a: /spec/a does not exist",
		`{op: copy, from: /spec/a/b, path: /spec/c}`:       "copy /spec/c: /spec/a does not exist",
		`{op: move, from: /spec/list/5, path: /spec/c}`:    "move /spec/c: /spec/list/5 does not exist",
		`{op: move, from: /spec/map, path: /spec/map/a/b}`: "/spec/map does not exist; add it first",
		`{op: test, path: /spec/map/a, value: 9}`:          "test /spec/map/a: the value is another one",
		`{op: test, path: /spec/a/b, value: 9}`:            "test /spec/a/b: /spec/a does not exist",
	} {
		patches := []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: "- {op: add, path: /spec/x, value: 1}\n- " + operation}}
		if _, err := withKustomize(t, patches, nil); err == nil && !strings.Contains(operation, "op: replace, path: /spec/a~1b") {
			t.Errorf("%s: kustomize applies it", operation)
		}
		if _, err := patched(t, patches, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got the error %v, want %q", operation, err, want)
		}
	}
}

func patched(t *testing.T, patches []v1alpha1.Patch, images []v1alpha1.Image) (map[string]any, error) {
	transformer, err := transform.Patches(patches, images)
	if err != nil {
		return nil, err
	}
	objects, err := transformer.TransformObjects("default", "app", decode(t, resources))
	return byName(objects), err
}

func decode(t *testing.T, text string) []client.Object {
	t.Helper()
	decoded := check.Must(document.Decode("resources", []byte(text)))(t)
	objects := make([]client.Object, len(decoded))
	for i := range decoded {
		objects[i] = decoded[i]
	}
	return objects
}

// byName returns the content of objects by name: kustomize changes their order.
func byName(objects []client.Object) map[string]any {
	if objects == nil {
		return nil
	}
	content := map[string]any{}
	for _, object := range objects {
		u := contentOf(object)
		content[object.GetObjectKind().GroupVersionKind().Kind] = u
	}
	return content
}

func contentOf(object client.Object) map[string]any {
	return object.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
}

func withKustomize(t *testing.T, patches []v1alpha1.Patch, images []v1alpha1.Image) (map[string]any, error) {
	t.Helper()
	kustomization := check.Must(json.Marshal(map[string]any{"resources": []string{"r.yaml"}, "patches": patches, "images": images}))(t)
	fsys := filesys.MakeFsInMemory()
	for name, data := range map[string][]byte{"/kustomization.yaml": kustomization, "/r.yaml": []byte(resources)} {
		check.NoError(t, fsys.WriteFile(name, data))
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(fsys, "/")
	if err != nil {
		return nil, err
	}
	data, err := built.AsYaml()
	if err != nil {
		return nil, err
	}
	return byName(decode(t, string(data))), nil
}

// things returns objects of a type that Kubernetes does not know.
func things(count int) []client.Object {
	objects := make([]client.Object, count)
	for i := range objects {
		objects[i] = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": fmt.Sprint("t", i)},
			"spec": map[string]any{"text": "${A}"},
		}}
	}
	return objects
}

// Each of these patches fits into a component of some kilobytes, and becomes
// gigabytes where it is encoded.
func TestAShortPatchDoesNotBecomeGigabytes(t *testing.T) {
	long, thing := strings.Repeat("x", 50_000), &v1alpha1.PatchTarget{Kind: "Thing"}
	aliases := strings.Repeat("*a, ", 9_999)
	for name, test := range map[string]struct {
		patches []v1alpha1.Patch
		objects int
		want    string
	}{
		"operations with aliases": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: "- {op: add, path: /spec/a, value: &a " + long + "}\n- {op: add, path: /spec/b, value: [" + aliases + "]}"}},
			want:    "the aliases of the document expand to more than 16777216 bytes",
		},
		"a merge with aliases": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: "spec: {a: &a " + long + ", b: [" + aliases + "]}"}},
			want:    "the aliases of the document expand to more than 16777216 bytes",
		},
		"a merge with a few aliases": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: "spec: {a: &a " + long + ", b: [" + strings.Repeat("*a, ", 100) + "]}"}},
			want:    "patch 1 of 1: line 1: it is larger than 3145728 bytes once its aliases are expanded",
		},
		"many copies": {
			patches: slices.Repeat([]v1alpha1.Patch{{Target: thing, Patch: "- {op: copy, from: /spec, path: /spec/c}\n- {op: add, path: /spec/a, value: " + long + "}\n- {op: copy, from: /spec, path: /spec/d}"}}, 64),
			want:    "patch 5 of 64: Thing t0: operation 3 of 3: copy /spec/d: the operations copy more than 4194304 bytes",
		},
		"many texts": {
			patches: texts(6),
			want:    "patch 4 of 6: Thing t0: it becomes larger than 3145728 bytes",
		},
		"nesting by copies": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: deepening(30)}},
			want:    "the operations copy more than 4194304 bytes",
		},
		"a merge into all objects": {
			patches: texts(1), objects: 400,
			want: "the objects grow by more than 268435456 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			transformer, err := transform.Patches(test.patches, nil)
			if err == nil {
				_, err = manifests.TransformObjects(t.Context(), transformer, "ns", "app", things(max(1, test.objects)))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 4096 {
				t.Errorf("got the error %.500v, want %q", err, test.want)
			}
		})
	}
}

// texts returns patches that each add a text of almost a megabyte.
func texts(count int) []v1alpha1.Patch {
	patches := make([]v1alpha1.Patch, count)
	for i := range patches {
		patches[i] = v1alpha1.Patch{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: fmt.Sprintf("spec: {a%d: %s}", i, strings.Repeat("x", 1_000_000))}
	}
	return patches
}

// deepening copies a value into its own depths again and again.
func deepening(count int) string {
	text, path := "- {op: add, path: /spec/a, value: {}}\n", "/spec/a"
	for range count {
		text += "- {op: copy, from: /spec/a, path: " + path + "/a}\n"
		path += "/a"
	}
	for range 5 {
		text += "- {op: copy, from: /spec/a, path: " + path + "/a}\n"
		path += strings.Repeat("/a", strings.Count(path, "/")-1)
	}
	return text
}

func TestPatchesEndWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	patches := check.Must(transform.Patches([]v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{}, Patch: "spec: {a: b}"}}, nil))(t)
	expression := check.Must(transform.CEL(`{"a": "b"}`, nil))(t)
	for name, transformer := range map[string]manifests.ObjectTransformer{"patches": patches, "an expression": expression} {
		if _, err := manifests.TransformObjects(ctx, transformer, "ns", "app", things(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
}

func TestSubstitutedValuesAreLimited(t *testing.T) {
	substitute, err := transform.Substitute(map[string]string{"A": strings.Repeat("x", 1<<20)}, nil)
	check.NoError(t, err)
	objects := things(1)
	objects[0].(*unstructured.Unstructured).Object["spec"] = strings.Repeat("${A}", 100_000)
	_, err = manifests.TransformObjects(t.Context(), substitute, "ns", "app", objects)
	check.Fails(t, err, "Thing t0: the values make it larger than 3145728 bytes")
}

func TestTheResultOfAnExpressionIsLimited(t *testing.T) {
	values := types.UnstructurableMap{"text": strings.Repeat("x", 50_000), "many": make([]any, 5_000)}
	for _, text := range []string{
		`{"a": self.many.map(x, self.text)}`,
		`[{"op": "add", "path": "/a", "value": self.many.map(x, self.text)}]`,
	} {
		expression := check.Must(transform.CEL(text, nil))(t)
		if _, err := expression.TransformParameters("ns", "app", values); err == nil || !strings.Contains(err.Error(), "it is larger than 3145728 bytes") {
			t.Errorf("%s: got the error %v", text, err)
		}
	}
}

func TestLongNamesOfImagesAreRefused(t *testing.T) {
	_, err := transform.Patches(nil, []v1alpha1.Image{{Name: "a", NewName: strings.Repeat("x", 2000)}})
	check.Fails(t, err, "image 1 of 1: it is longer than 1024 bytes")
}

// The memory that is allocated shows the cost, and is the same on a busy machine.
func TestPatchesOfAnObjectCostNoMoreThanTheirNumber(t *testing.T) {
	value := strings.Repeat("x", 4000)
	for name, patch := range map[string]string{
		"operations": `[{"op": "add", "path": "/spec/k%d", "value": "` + value + `"}]`,
		"merge":      "spec: {k%d: " + value + "}",
	} {
		cost := func(count int) uint64 {
			var patches []v1alpha1.Patch
			for i := range count {
				patches = append(patches, v1alpha1.Patch{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: fmt.Sprintf(patch, i)})
			}
			transformer := check.Must(transform.Patches(patches, nil))(t)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			check.Must(manifests.TransformObjects(t.Context(), transformer, "ns", "app", things(1)))(t)
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := cost(50), cost(400); many > 16*few {
			t.Errorf("%s: 50 patches allocate %d bytes, and 400 patches %d", name, few, many)
		}
	}
}

func TestPatchesSayWhatTheyWorkOn(t *testing.T) {
	transformer := check.Must(transform.Patches(slices.Repeat([]v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: "spec: {a: b}"}}, 2), nil))(t)
	ctx, at := renders.WithProgress(t.Context())
	check.Must(manifests.TransformObjects(ctx, transformer, "ns", "app", things(3)))(t)
	check.SameNamed(t, "at", "patch 2 of 2, Thing t2", at())
}
