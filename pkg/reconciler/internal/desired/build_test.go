// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

const name = "shop.example.com"

var owner = plan.Owner{ID: "ownerid", Ref: plan.OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "main", UID: "u1"}}

// cluster is what the cluster of the tests serves: kinds, with a slash before
// those that live in namespaces.
var cluster = []string{
	"v1 Namespace", "v1 /ConfigMap", "v1 /Secret", "v1 /Service", "v1 /PersistentVolumeClaim", "v1 PersistentVolume",
	"apps/v1 /Deployment", "batch/v1 /Job", "rbac.authorization.k8s.io/v1 ClusterRole",
	"apiextensions.k8s.io/v1 CustomResourceDefinition", "apiregistration.k8s.io/v1 APIService", "networking.k8s.io/v1 /NetworkPolicy", "example.com/v1 /AllowList",
}

func resolveInCluster(_ context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error) {
	version := gvk.GroupVersion().String()
	switch {
	case slices.Contains(cluster, version+" /"+gvk.Kind):
		return true, true, nil
	case slices.Contains(cluster, version+" "+gvk.Kind):
		return false, true, nil
	case gvk.Kind == "SubjectAccessReview":
		return false, true, ErrUnmanageable
	case gvk.Group == "down.example.com":
		return false, false, errors.New("the server is down")
	default:
		return false, false, nil
	}
}

// parse reads objects from YAML documents.
func parse(t testing.TB, text string) []client.Object {
	t.Helper()
	var objects []client.Object
	for document := range strings.SplitSeq(text, "\n---") {
		obj := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &obj.Object); err != nil {
			t.Fatalf("%v in %s", err, document)
		}
		objects = append(objects, obj)
	}
	return objects
}

func input(objects ...client.Object) Input {
	return Input{Name: name, Owner: owner, Objects: objects, Namespace: "shop", Resolve: resolveInCluster}
}

// build builds objects that must be right.
func build(t testing.TB, in Input) []plan.Desired {
	t.Helper()
	return check.Must(Build(t.Context(), in))(t)
}

func keys(objects []plan.Desired) []string {
	var list []string
	for _, object := range objects {
		list = append(list, object.Key.String())
	}
	return list
}

func TestBuildMakesCompleteObjects(t *testing.T) {
	objects := build(t, input(parse(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: api, labels: {app: api}, annotations: {shop.example.com/apply-order: "3"},
  uid: x, resourceVersion: "1", generation: 7, managedFields: [{manager: x}], creationTimestamp: null, ownerReferences: [{apiVersion: example.com/v1, kind: Shop, name: main, uid: u1, controller: true}], selfLink: x, generateName: ""},
  spec: {replicas: 2}, status: {replicas: 1}}`)...))
	if len(objects) != 1 {
		t.Fatalf("got %d objects", len(objects))
	}
	got := objects[0]
	want := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{
			"name": "api", "namespace": "shop",
			"labels":      map[string]any{"app": "api", "shop.example.com/owner-id": "ownerid"},
			"annotations": map[string]any{"shop.example.com/apply-order": "3", "shop.example.com/owner": "example.com/Shop/shop/main/u1"},
		},
		"spec": map[string]any{"replicas": int64(2)},
	}
	check.Equal(t, want, normalize(t, got.Manifest.Object))
	if got.Key != (plan.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}) || got.Version != "v1" {
		t.Errorf("got %#v in version %s", got.Key, got.Version)
	}
	if got.Policies.Order.Apply != 3 || got.Policies.Update != "Replace" || got.Digest == "" {
		t.Errorf("got %#v, digest %q", got.Policies, got.Digest)
	}
}

// normalize reads a manifest as a server would, so that numbers are int64.
func normalize(t *testing.T, manifest map[string]any) map[string]any {
	t.Helper()
	copied := check.Must(cloneMap(manifest, new(byteBudget(maxBytes))))(t)
	data := check.Must((&unstructured.Unstructured{Object: copied}).MarshalJSON())(t)
	read := &unstructured.Unstructured{}
	check.NoError(t, read.UnmarshalJSON(data))
	return read.Object
}

func TestJobsWithATimeToLiveExpire(t *testing.T) {
	for text, want := range map[string]bool{
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 0}}":    true,
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {ttlSecondsAfterFinished: null}}": false,
		"{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {}}":                              false,
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, spec: {ttlSecondsAfterFinished: 0}}":    false,
	} {
		objects := build(t, input(parse(t, text)...))
		pack, ok := NewPack(objects)
		if !ok {
			t.Fatalf("%s: cannot be packed", text)
		}
		if objects[0].HasTTL != want || pack.Objects()[0].HasTTL != want {
			t.Errorf("%s: expires %v, packed %v", text, objects[0].HasTTL, pack.Objects()[0].HasTTL)
		}
	}
}

func TestBuildDoesNotChangeItsInput(t *testing.T) {
	objects := parse(t, `{apiVersion: v1, kind: Secret, metadata: {name: s, uid: x, annotations: {shop.example.com/owner: other}}, stringData: {a: b}, status: {}}
---
{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}]}`)
	before := []any{objects[0].DeepCopyObject(), objects[1].DeepCopyObject()}
	built := build(t, input(objects...))
	built[0].Manifest.Object["data"] = "changed"
	check.Equal(t, before, []any{objects[0], objects[1]})
}

func TestBuildFlattensLists(t *testing.T) {
	objects := build(t, input(parse(t, `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
- apiVersion: v1
  kind: ConfigMapList
  metadata: {resourceVersion: "1"}
  items:
  - metadata: {name: b}
  - {apiVersion: v1, kind: Secret, metadata: {name: c}}
- {apiVersion: v1, kind: List, items: []}
- {apiVersion: v1, kind: List}
---
{apiVersion: v1, kind: SecretList, items: null}
---
{apiVersion: example.com/v1, kind: AllowList, metadata: {name: a}, items: [x, y]}`)...)) // a kind of its own
	check.Equal(t, []string{"ConfigMap shop/a", "ConfigMap shop/b", "Secret shop/c", "AllowList shop/a"}, keys(objects))
}

func TestBuildPlacesObjects(t *testing.T) {
	objects := build(t, input(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "system:a", namespace: ignored}}`)...))
	check.Equal(t, []string{"ConfigMap other/a", "ConfigMap shop/a", "ClusterRole system:a"}, keys(objects))
	check.SameNamed(t, "the cluster role has the namespace", "", objects[2].Manifest.GetNamespace())
	check.SameNamed(t, "the config map has the namespace", "shop", objects[1].Manifest.GetNamespace())
}

func TestBuildAsksOncePerType(t *testing.T) {
	asked := map[schema.GroupVersionKind]int{}
	var objects []client.Object
	for i := range 20 {
		objects = append(objects, parse(t, fmt.Sprintf("{apiVersion: v1, kind: %s, metadata: {name: a%d}}", []string{"ConfigMap", "Secret"}[i%2], i))...)
	}
	in := input(objects...)
	in.Resolve = func(ctx context.Context, gvk schema.GroupVersionKind) (bool, bool, error) {
		asked[gvk]++
		return resolveInCluster(ctx, gvk)
	}
	build(t, in)
	want := map[schema.GroupVersionKind]int{{Version: "v1", Kind: "ConfigMap"}: 1, {Version: "v1", Kind: "Secret"}: 1}
	check.Equal(t, want, asked)
}

func TestAnAutoscalerNamesWhatItScales(t *testing.T) {
	for name, tc := range map[string]struct {
		object string
		want   *plan.Key
	}{
		"an autoscaler": {
			`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: db}}}`,
			&plan.Key{Group: "apps", Kind: "StatefulSet", Namespace: "shop", Name: "db"},
		},
		"of a core type":   {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {scaleTargetRef: {kind: ReplicationController, name: db}}}`, &plan.Key{Kind: "ReplicationController", Namespace: "shop", Name: "db"}},
		"KEDA":             {`{apiVersion: keda.sh/v1alpha1, kind: ScaledObject, metadata: {name: a}, spec: {scaleTargetRef: {name: api}}}`, &plan.Key{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}},
		"something else":   {`{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, spec: {scaleTargetRef: {name: api}}}`, nil},
		"without a target": {`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}}`, &plan.Key{Namespace: "shop"}},
	} {
		in := input(parse(t, tc.object)...)
		in.Resolve = func(context.Context, schema.GroupVersionKind) (bool, bool, error) { return true, true, nil }
		check.EqualNamed(t, name, tc.want, build(t, in)[0].ScaleTarget)
	}
}
