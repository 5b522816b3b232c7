// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
)

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
	tests := []struct {
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
	}
	for _, test := range tests {
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
	decoded, err := document.Decode("resources", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
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
	kustomization, err := json.Marshal(map[string]any{"resources": []string{"r.yaml"}, "patches": patches, "images": images})
	if err != nil {
		t.Fatal(err)
	}
	fsys := filesys.MakeFsInMemory()
	for name, data := range map[string][]byte{"/kustomization.yaml": kustomization, "/r.yaml": []byte(resources)} {
		if err := fsys.WriteFile(name, data); err != nil {
			t.Fatal(err)
		}
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
