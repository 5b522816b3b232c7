// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/inspect"
)

var shopKind = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Shop"}

// offline is a server for objects that no API server has checked.
func offline(t testing.TB, objects ...client.Object) *Server {
	t.Helper()
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(shopKind, apimeta.RESTScopeNamespace)
	for _, kind := range []string{"ConfigMap", "Secret", "Pod", "Event"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), apimeta.RESTScopeNamespace)
	}
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, apimeta.RESTScopeNamespace)
	var typed []client.Object
	odd := []*unstructured.Unstructured{} // as they are
	for _, object := range objects {
		if u, ok := object.(*unstructured.Unstructured); ok {
			odd = append(odd, u)
		} else {
			typed = append(typed, object)
		}
	}
	c := interceptor.NewClient(fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(typed...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			into, ok := object.(*unstructured.Unstructured)
			for _, u := range odd {
				if ok && u.GetKind() == into.GetKind() && u.GetName() == key.Name {
					into.Object = runtime.DeepCopyJSON(u.Object)
					return nil
				}
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			into, ok := list.(*unstructured.UnstructuredList)
			if !ok {
				return c.List(ctx, list, options...)
			}
			for _, u := range odd {
				if u.GetKind()+"List" == into.GetKind() {
					into.Items = append(into.Items, unstructured.Unstructured{Object: runtime.DeepCopyJSON(u.Object)})
				}
			}
			return nil
		},
		Watch: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
			w, err := c.Watch(ctx, list, options...)
			if err == nil {
				context.AfterFunc(ctx, w.Stop) // as a watch of a server
			}
			return w, err
		},
	})
	s, err := New(unreachable, Options{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "shop.example.com/v1", APIResources: []metav1.APIResource{{Name: "shops", Kind: "Shop", Namespaced: true, Verbs: []string{"get", "list"}, Categories: []string{inspect.Category}}},
	}}}}
	s.cluster.client, s.cluster.pods = c, nil
	s.cluster.again = func() *inspect.Reader { return &inspect.Reader{Client: c, Mapper: mapper, Discovery: kinds} }
	t.Cleanup(s.Close)
	return s
}

func (s *Server) answer(path string) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w.Code, w.Body.String()
}

const about = "?type=shops.shop.example.com&namespace=market&name=corner"

const ownerID = "b7l5rv2kqmbhkl5h3xsvjvzgzs2ud4tc"

// corner is a component with a status, and with dependents "v1 ConfigMap market/name".
func corner(message string, dependents ...string) *unstructured.Unstructured {
	objects := map[string]any{}
	for _, name := range dependents {
		objects[name] = `{"uid":"x"}`
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Shop", "metadata": map[string]any{"namespace": "market", "name": "corner", "uid": "shop-uid"},
		"spec": map[string]any{"text": message},
		"status": map[string]any{
			"reconciler": "shop.example.com", "ownerID": ownerID, "state": "Error", "inventory": map[string]any{"format": int64(3), "objects": objects},
			"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "Error", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}},
		},
	}}
}

func dependentNamed(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	u.SetNamespace("market")
	u.SetName(name)
	u.SetLabels(map[string]string{"shop.example.com/owner-id": ownerID})
	u.SetAnnotations(map[string]string{"shop.example.com/owner": "shop.example.com/Shop/market/corner/shop-uid"})
	return u
}

func TestTextsOfObjectsAreDataInAnswers(t *testing.T) {
	const hostile = "<img src=x onerror=alert(1)></script>\u2028&\n\ndata: x\x00\xff"
	pod := dependentNamed("Pod", "pod")
	pod.Object["status"] = map[string]any{"phase": "Failed", "message": hostile, "reason": hostile}
	happened := &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "e"}, Message: hostile, Reason: hostile, Type: hostile, InvolvedObject: corev1.ObjectReference{UID: "shop-uid", Kind: hostile}}
	s := offline(t, corner(hostile, "v1 Pod market/pod"), pod, happened)
	for _, path := range []string{"components", "tree" + about, "why" + about, "events" + about, "spec" + about, "history" + about, "tree?type=" + "%3Cimg%3E" + "&name=x", "none%3Cimg%3E"} {
		_, text := s.answer("/api/" + path)
		if strings.ContainsAny(text, "<>&\u2028\n") || !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", path, text)
		}
	}
	q := newQueue()
	q.put("a", event{hostile[:4], change{"set", componentSummary{Message: hostile}}})
	for _, e := range q.take() {
		if data, err := json.Marshal(e.data); err != nil || strings.ContainsAny(string(data), "<>\n") {
			t.Errorf("%s %v", data, err)
		}
	}
}

func TestValuesOfSecretsAreInNoAnswer(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	secret := dependentNamed("Secret", "keys")
	secret.Object["data"] = map[string]any{"key": encoded}
	secret.Object["stringData"] = map[string]any{"key": canary}
	secret.SetAnnotations(map[string]string{
		"shop.example.com/owner": "shop.example.com/Shop/market/corner/shop-uid", corev1.LastAppliedConfigAnnotation: canary, "example.com/copy": canary,
	})
	secret.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "shop.example.com", Operation: "Apply", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:shop.example.com/owner-id":{}}}}`)},
		{Manager: "kubectl-edit", Operation: "Update", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:key":{}},"f:stringData":{"f:key":{}},"f:metadata":{"f:annotations":{"f:example.com/copy":{}}}}`)},
	})
	s := offline(t, corner("a message", "v1 Secret market/keys"), secret)
	status, text := s.answer("/api/tree" + about)
	if status != http.StatusOK || !strings.Contains(text, `"manager":"kubectl-edit"`) || !strings.Contains(text, "***") {
		t.Fatalf("%d %s", status, text)
	}
	for _, path := range []string{"tree" + about, "why" + about, "events" + about, "history" + about} {
		if _, text := s.answer("/api/" + path); strings.Contains(text, canary) || strings.Contains(text, encoded) {
			t.Errorf("%s: %s", path, text)
		}
	}
	if status, text := s.answer("/api/spec?type=secrets&namespace=market&name=keys"); status != http.StatusNotFound {
		t.Errorf("the spec of a Secret: %d %s", status, text)
	}
}

// Objects of a cluster may have any form: a server of another version, or a type without a schema, admits it.
func TestNoObjectMakesTheServerPanic(t *testing.T) {
	odd := []any{nil, "text", int64(7), 1.5, true, []any{}, []any{nil, "x", map[string]any{}}, map[string]any{}, map[string]any{"a": nil}}
	reconciler := "shop.example.com"
	for _, value := range odd {
		for _, path := range [][]string{{"status"}, {"status", "conditions"}, {"status", "inventory"}, {"status", "inventory", "objects"}, {"status", "history"},
			{"status", "rollback"}, {"status", "observedGeneration"}, {"status", "state"}, {"spec"}, {"metadata", "annotations"}, {"metadata", "managedFields"}, {"metadata", "creationTimestamp"}} {
			c := corner("a message", "v1 ConfigMap market/a")
			set(c.Object, value, path...)
			s := offline(t, c)
			for _, answer := range []string{"tree", "why", "history", "events", "spec", "diff"} {
				if status, text := s.answer("/api/" + answer + about + "&revision=1"); !json.Valid([]byte(text)) {
					t.Errorf("%s with %v at %s: %d %s", answer, value, path, status, text)
				}
			}
		}
		for _, path := range [][]string{{"status"}, {"status", "conditions"}, {"status", "replicas"}, {"status", "phase"}, {"status", "containerStatuses"}, {"spec"}, {"spec", "replicas"},
			{"spec", "template"}, {"data"}, {"metadata", "managedFields"}, {"metadata", "annotations"}, {"metadata", "finalizers"}, {"metadata", "ownerReferences"}} {
			for _, kind := range []string{"Deployment", "Pod", "Secret", "Job", "Unknown"} {
				object := dependentNamed(kind, "a").Object
				set(object, value, path...)
				component := inspect.Component{Object: corner("a"), Reconciler: reconciler}
				d := component.Assess(v1alpha1.InventoryItem{Kind: kind, Name: "a"}, &unstructured.Unstructured{Object: object})
				if _, err := json.Marshal(dependentOf(d, []*unstructured.Unstructured{{Object: object}})); err != nil {
					t.Errorf("%s with %v at %s: %v", kind, value, path, err)
				}
			}
		}
	}
}

// set sets a field, whatever is there.
func set(object map[string]any, value any, path ...string) {
	for _, name := range path[:len(path)-1] {
		below, ok := object[name].(map[string]any)
		if !ok {
			below = map[string]any{}
			object[name] = below
		}
		object = below
	}
	object[path[len(path)-1]] = value
}

func TestAPanicIsAnError(t *testing.T) {
	if err := guarded(func() error { panic("at the disco") }); err == nil || err.Error() != "panic: at the disco" {
		t.Error(err)
	}
}

func TestAPageThatReadsSlowlyGetsTheLatestOfEachThing(t *testing.T) {
	q := newQueue()
	for i := range 10_000 {
		q.put(fmt.Sprint(i%3), event{"component", i})
	}
	if events := q.take(); len(events) != 3 || events[0].data != 9999 || events[1].data != 9997 || events[2].data != 9998 {
		t.Errorf("%v", events)
	}
	if events := q.take(); len(events) != 0 {
		t.Errorf("%v", events)
	}
}

func TestAClusterThatCannotBeReachedIsNamed(t *testing.T) {
	s := newServer(t, Options{})
	for path, want := range map[string]string{"/api/components": "cannot be reached", "/api/tree" + about: "connection refused"} {
		started := time.Now()
		if status, text := s.answer(path); status != http.StatusBadGateway || !strings.Contains(text, want) || time.Since(started) > patience {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestATypeThatMayNotBeListedDoesNotHideOthers(t *testing.T) {
	f := newFleet(nil, "")
	f.state = &fleetState{complete: make(chan struct{}), queues: map[*queue]bool{}, types: map[string]*typeState{
		"shops.shop.example.com": {tried: true, items: map[address]componentSummary{{"shops.shop.example.com", "market", "corner"}: {Name: "corner"}}},
		"toys.shop.example.com":  {tried: true, problem: "Toys cannot be listed: you may not"},
	}}
	f.state.checkComplete()
	if list, err := f.list(t.Context()); err != nil || len(list.Items) != 1 || len(list.Problems) != 1 {
		t.Errorf("%+v %v", list, err)
	}
}
