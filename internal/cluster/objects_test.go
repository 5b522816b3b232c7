// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/test/check"
)

func configMap(namespace, name, value string) string {
	return `{apiVersion: v1, kind: ConfigMap, metadata: {namespace: ` + namespace + `, name: ` + name + `}, data: {key: "` + value + `"}}`
}

func TestAWriteIsRefusedIfItsPreconditionDoesNotHold(t *testing.T) {
	target := real(t)
	ctx, objects, namespace := t.Context(), target.Objects(), newNamespace(t, target)
	created, configMaps := create(t, target, configMap(namespace, "settings", "a"))
	refused := func(name string, err error) { // Invalid is about metadata.uid
		t.Helper()
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, change := range map[string]func(*unstructured.Unstructured){
		"another uid":      func(o *unstructured.Unstructured) { o.SetUID("11111111-2222-3333-4444-555555555555") },
		"an older version": func(o *unstructured.Unstructured) { o.SetResourceVersion("1") },
		"what is gone": func(o *unstructured.Unstructured) {
			o.SetName("gone")
			o.SetResourceVersion("12345")
		},
	} {
		other := created.DeepCopy()
		change(other)
		_, err := objects.Update(ctx, configMaps, other, "test")
		refused("update of "+name, err)
		applied := parse(t, configMap(namespace, "settings", "b"))
		change(applied)
		if applied.GetName() == "gone" {
			applied.SetUID(created.GetUID())
		}
		_, err = objects.Apply(ctx, configMaps, applied, "test")
		refused("apply of "+name, err)
		_, _, err = objects.Delete(ctx, configMaps, namespace, other.GetName(), other.GetUID(), other.GetResourceVersion(), metav1.DeletePropagationBackground)
		refused("deletion of "+name, err)
	}
	_, err := objects.Create(ctx, configMaps, parse(t, configMap(namespace, "settings", "b")), "test")
	refused("create of what exists", err)
	live, err := objects.Get(ctx, configMaps, namespace, "settings")
	if err != nil || live.GetResourceVersion() != created.GetResourceVersion() {
		t.Fatalf("the object was changed: %v, %v", live, err)
	}
}

func TestADeletionTellsWhetherTheObjectIsGone(t *testing.T) {
	target := real(t)
	ctx, objects, namespace := t.Context(), target.Objects(), newNamespace(t, target)
	for _, tc := range []struct {
		name, object string
		gone         bool
	}{
		{name: "ConfigMap", object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}", gone: true},
		{name: "ConfigMap with a finalizer", object: "{apiVersion: v1, kind: ConfigMap, metadata: {name: second, finalizers: [test.example.com/f]}}"},
		{name: "ServiceAccount", object: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: x}}", gone: true},
		{name: "Service", object: "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {ports: [{port: 80}]}}", gone: true},
		{name: "Secret", object: "{apiVersion: v1, kind: Secret, metadata: {name: x}}", gone: true},
		{name: "claim", object: "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: x}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"},
		{name: "Deployment", object: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: x}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}", gone: true},
		{name: "Job", object: "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}", gone: true},
		{name: "pod that runs nowhere", object: "{apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: c, image: i}]}}", gone: true},
		{name: "pod on a node", object: "{apiVersion: v1, kind: Pod, metadata: {name: second}, spec: {nodeName: node-0, containers: [{name: c, image: i}]}}"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			object := parse(t, tc.object)
			object.SetNamespace(namespace)
			resource := resolve(t, target, object.GroupVersionKind())
			created := check.Must(objects.Create(ctx, resource, object, "test"))(t)
			gone, live, err := objects.Delete(ctx, resource, namespace, object.GetName(), created.GetUID(), "", metav1.DeletePropagationBackground)
			check.NoError(t, err)
			_, err = objects.Get(ctx, resource, namespace, object.GetName())
			absent := cluster.IsNotFound(err, resource, object.GetName())
			if gone && !absent {
				t.Errorf("the answer says gone, but the object is still there (%v)", err)
			}
			if gone != tc.gone {
				t.Errorf("gone = %v, but it is absent: %v; the answer was %v", gone, absent, live)
			}
			if !gone && (live == nil || live.GetDeletionTimestamp() == nil) {
				t.Errorf("the object that is still there is not in the answer: %v", live)
			}
		})
	}
	namespaces := resolve(t, target, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	object := check.Must(objects.Get(ctx, namespaces, "", namespace))(t)
	if gone, live, err := objects.Delete(ctx, namespaces, "", namespace, object.GetUID(), object.GetResourceVersion(), metav1.DeletePropagationBackground); gone || live == nil || err != nil {
		t.Errorf("deletion of a namespace: got %v, %v, %v", gone, live, err)
	}
}

func TestWhatCannotBeAddressedIsNotSent(t *testing.T) {
	target := real(t)
	ctx, objects, namespace := t.Context(), target.Objects(), newNamespace(t, target)
	created, configMaps := create(t, target, configMap(namespace, "settings", "a"))
	namespaces := resolve(t, target, schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	for name, request := range map[string]func() error{
		"a path in a name":           func() error { _, err := objects.Get(ctx, configMaps, namespace, "../../default"); return err },
		"a path in a namespace":      func() error { _, err := objects.Get(ctx, configMaps, "..", "settings"); return err },
		"no name":                    func() error { _, err := objects.Get(ctx, configMaps, namespace, ""); return err },
		"no namespace":               func() error { _, err := objects.Get(ctx, configMaps, "", "settings"); return err },
		"a namespace in a namespace": func() error { _, err := objects.Get(ctx, namespaces, namespace, namespace); return err },
		"a deletion without a uid": func() error {
			_, _, err := objects.Delete(ctx, configMaps, namespace, "settings", "", "", metav1.DeletePropagationBackground)
			return err
		},
		"a create without a namespace": func() error {
			object := parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}`)
			_, err := objects.Create(ctx, configMaps, object, "test")
			return err
		},
	} {
		if err := request(); err == nil {
			t.Errorf("%s: was accepted", name)
		} else if _, answered := errors.AsType[*apierrors.StatusError](err); answered {
			t.Errorf("%s: was sent: %v", name, err)
		}
	}
	if live, err := objects.Get(ctx, configMaps, namespace, "settings"); err != nil || live.GetUID() != created.GetUID() {
		t.Errorf("got %v, %v", live, err)
	}
}

const asked = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","namespace":"shop","uid":"one","resourceVersion":"7"}}`

// requests are all ways to ask for an object.
func requests(t *testing.T) map[string]func(*cluster.Objects) error {
	object := parse(t, asked)
	first := func(_ *unstructured.Unstructured, err error) error { return err }
	return map[string]func(*cluster.Objects) error{
		"get":    func(o *cluster.Objects) error { return first(o.Get(t.Context(), configMaps, "shop", "settings")) },
		"create": func(o *cluster.Objects) error { return first(o.Create(t.Context(), configMaps, object, "test")) },
		"update": func(o *cluster.Objects) error { return first(o.Update(t.Context(), configMaps, object, "test")) },
		"apply":  func(o *cluster.Objects) error { return first(o.Apply(t.Context(), configMaps, object, "test")) },
		"patch": func(o *cluster.Objects) error {
			return first(o.Patch(t.Context(), configMaps, "shop", "settings", types.MergePatchType, []byte("{}"), "test"))
		},
		"delete": func(o *cluster.Objects) error {
			gone, live, err := o.Delete(t.Context(), configMaps, "shop", "settings", "one", "7", "Background")
			if err != nil && (gone || live != nil) {
				t.Errorf("a deletion with an error says gone: %v, live: %v", gone, live)
			}
			return err
		},
	}
}

func TestAnAnswerAboutAnotherObjectIsAnError(t *testing.T) {
	replaced := func(old, new string) string { return strings.Replace(asked, old, new, 1) }
	for name, tc := range map[string]struct {
		body string
		// only are the requests to which the answer is wrong; all if it is empty.
		only string
	}{
		"another kind":      {body: replaced("ConfigMap", "Secret")},
		"another group":     {body: replaced(`"v1"`, `"example.com/v1"`)},
		"another version":   {body: replaced(`"v1"`, `"v2"`)},
		"another namespace": {body: replaced("shop", "bank")},
		"no namespace":      {body: replaced(`"namespace":"shop",`, "")},
		"another name":      {body: replaced("settings", "other")},
		"another uid":       {body: replaced("one", "two"), only: "update apply delete"},
		"nothing":           {body: "{}"},
		"a list":            {body: `{"apiVersion":"v1","kind":"ConfigMapList","items":[` + asked + `]}`},
		"success about another name": {
			body: `{"apiVersion":"v1","kind":"Status","status":"Success","details":{"name":"other","uid":"one"}}`,
		},
		"success about another uid": {
			body: `{"apiVersion":"v1","kind":"Status","status":"Success","details":{"name":"settings","uid":"two"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			target := serve(t, cluster.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				answer(w, "application/json", 200, tc.body)
			})
			for verb, send := range requests(t) {
				err := send(target.Objects())
				if want := tc.only == "" || strings.Contains(tc.only, verb); (err != nil) != want {
					t.Errorf("%s: got %v, want an error: %v", verb, err, want)
				}
				if err != nil && !strings.Contains(err.Error(), `ConfigMap "settings" of v1 in namespace "shop"`) {
					t.Errorf("%s: %q does not say what was asked for", verb, err)
				}
			}
		})
	}
}
