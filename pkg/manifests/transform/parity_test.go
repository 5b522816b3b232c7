// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
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
	decoded, err := manifests.Decode("resources", []byte(text))
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
