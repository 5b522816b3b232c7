// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// aggregated is an API server of its own: it serves Gadgets, and keeps them in memory.
// It offers no watches and no tables, as small servers do.
type aggregated struct {
	group string
	url   *url.URL

	mu      sync.Mutex
	version int
	objects map[string]*unstructured.Unstructured // by namespace and name
}

func newAggregated(t *testing.T, group string) *aggregated {
	t.Helper()
	a := &aggregated{group: group, objects: map[string]*unstructured.Unstructured{}}
	mux := http.NewServeMux()
	prefix := "/apis/" + group + "/v1"
	collection, object := prefix+"/namespaces/{namespace}/gadgets", prefix+"/namespaces/{namespace}/gadgets/{name}"
	mux.HandleFunc("GET "+prefix, a.discover)
	mux.HandleFunc("GET "+prefix+"/gadgets", a.list)
	mux.HandleFunc("GET "+collection, a.list)
	mux.HandleFunc("POST "+collection, a.create)
	mux.HandleFunc("GET "+object, a.get)
	mux.HandleFunc("PUT "+object, a.replace)
	mux.HandleFunc("DELETE "+object, a.remove)
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	var err error
	if a.url, err = url.Parse(server.URL); err != nil {
		t.Fatal(err)
	}
	return a
}

// manifests are the APIService, and the Service that leads the API server to this machine.
func (a *aggregated) manifests(t *testing.T, namespace string) []client.Object {
	t.Helper()
	host, port, err := net.SplitHostPort(a.url.Host)
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	service := &corev1.Service{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}, ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gadgets"},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: host},
	}
	api := &apiregistrationv1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiregistration.k8s.io/v1", Kind: "APIService"},
		ObjectMeta: metav1.ObjectMeta{Name: "v1." + a.group},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: a.group, Version: "v1", GroupPriorityMinimum: 100, VersionPriority: 100, InsecureSkipTLSVerify: true,
			Service: &apiregistrationv1.ServiceReference{Namespace: namespace, Name: "gadgets", Port: new(int32(number))},
		},
	}
	return []client.Object{service, api}
}

func (a *aggregated) gadget(namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": a.group + "/v1", "kind": "Gadget", "metadata": map[string]any{"namespace": namespace, "name": name}, "spec": map[string]any{"size": int64(1)},
	}}
}

// put is what others do: they create an object, or write its status.
func (a *aggregated) put(object *unstructured.Unstructured) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store(object)
}

// drop deletes an object, as others do.
func (a *aggregated) drop(namespace, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.objects, namespace+"/"+name)
}

// names are the objects that there are.
func (a *aggregated) names() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(a.objects)), " ")
}

// setReady writes the status of an object.
func (a *aggregated) setReady(namespace, name, status string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := a.objects[namespace+"/"+name].DeepCopy()
	object.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": status, "reason": "Winding", "message": "it is being wound up",
	}}}
	a.store(object)
}

func (a *aggregated) store(object *unstructured.Unstructured) {
	a.version++
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("gadget-%d", a.version)))
		object.SetCreationTimestamp(metav1.Now())
	}
	object.SetResourceVersion(strconv.Itoa(a.version))
	a.objects[object.GetNamespace()+"/"+object.GetName()] = object
}

func answer(w http.ResponseWriter, code int, content any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(content)
}

func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	err.ErrStatus.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	answer(w, int(err.ErrStatus.Code), err.ErrStatus)
}

func (a *aggregated) resource() schema.GroupResource {
	return schema.GroupResource{Group: a.group, Resource: "gadgets"}
}

func (a *aggregated) discover(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"}, GroupVersion: a.group + "/v1",
		APIResources: []metav1.APIResource{{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", Namespaced: true, Verbs: metav1.Verbs{"create", "delete", "get", "list", "update"}}},
	})
}

func (a *aggregated) list(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") != "" {
		refuse(w, apierrors.NewMethodNotSupported(a.resource(), "watch"))
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	items := []any{}
	for _, key := range slices.Sorted(maps.Keys(a.objects)) {
		if namespace := r.PathValue("namespace"); namespace == "" || strings.HasPrefix(key, namespace+"/") {
			items = append(items, a.objects[key].Object)
		}
	}
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": a.group + "/v1", "kind": "GadgetList", "metadata": map[string]any{"resourceVersion": strconv.Itoa(a.version)}, "items": items,
	})
}

// find returns the object of a request; nil if there is none, which is answered.
func (a *aggregated) find(w http.ResponseWriter, r *http.Request) *unstructured.Unstructured {
	object := a.objects[r.PathValue("namespace")+"/"+r.PathValue("name")]
	if object == nil {
		refuse(w, apierrors.NewNotFound(a.resource(), r.PathValue("name")))
	}
	return object
}

func (a *aggregated) get(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if object := a.find(w, r); object != nil {
		answer(w, http.StatusOK, object.Object)
	}
}

func (a *aggregated) create(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object := &unstructured.Unstructured{}
	switch err := json.NewDecoder(r.Body).Decode(object); {
	case err != nil:
		refuse(w, apierrors.NewBadRequest(err.Error()))
	case a.objects[object.GetNamespace()+"/"+object.GetName()] != nil:
		refuse(w, apierrors.NewAlreadyExists(a.resource(), object.GetName()))
	default:
		a.store(object)
		answer(w, http.StatusCreated, object.Object)
	}
}

func (a *aggregated) replace(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, object := a.find(w, r), &unstructured.Unstructured{}
	if before == nil {
		return
	}
	switch err := json.NewDecoder(r.Body).Decode(object); {
	case err != nil:
		refuse(w, apierrors.NewBadRequest(err.Error()))
	case object.GetResourceVersion() != before.GetResourceVersion():
		refuse(w, apierrors.NewConflict(a.resource(), object.GetName(), fmt.Errorf("it is at version %s", before.GetResourceVersion())))
	default:
		object.SetUID(before.GetUID())
		object.Object["status"] = before.Object["status"]
		a.store(object)
		answer(w, http.StatusOK, object.Object)
	}
}

func (a *aggregated) remove(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	object, options := a.find(w, r), metav1.DeleteOptions{}
	if object == nil {
		return
	}
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil || options.Preconditions == nil || *options.Preconditions.UID != object.GetUID() {
		refuse(w, apierrors.NewConflict(a.resource(), object.GetName(), fmt.Errorf("it is another one")))
		return
	}
	delete(a.objects, object.GetNamespace()+"/"+object.GetName())
	answer(w, http.StatusOK, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: object.GetName(), Group: a.group, Kind: "gadgets", UID: object.GetUID()},
	})
}

// The type of an aggregated API server is one of the component's own, or an additional
// managed one: its instances come after it and go before it, and those of others block.
func TestATypeOfAnAggregatedServerIsManagedLikeAnyOther(t *testing.T) {
	b := newBench(t)
	a := newAggregated(t, "gadgets-"+strings.TrimPrefix(b.namespace, "engine-")+".corbel.run")
	ours := a.gadget(b.namespace, "ours")
	objects := append(a.manifests(t, b.namespace), ours)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, apiregistrationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b.engine = newEngine(t, reconciler.ReconcilerOptions{Scheme: scheme})
	t.Cleanup(func() {
		// Otherwise every later discovery would ask a server that is gone.
		_ = b.Delete(context.Background(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + a.group},
		}})
	})

	apply := func() (outcome reconciler.Outcome) {
		b.until("the API is available", func() bool {
			var err error
			if outcome, err = b.apply(objects...); err != nil && !apierrors.IsServiceUnavailable(err) {
				t.Fatal(err)
			}
			return err == nil
		})
		return outcome
	}
	b.until("the instance, after the API is available", func() bool { apply(); return a.names() != "" })
	a.setReady(b.namespace, "ours", "False")
	outcome := apply()
	if len(outcome.Waiting) != 1 || outcome.Waiting[0].Key.Kind != "Gadget" || !strings.Contains(outcome.Waiting[0].Message, "it is being wound up") {
		t.Errorf("an instance that is not ready: waiting for %v", outcome.Waiting)
	}
	a.setReady(b.namespace, "ours", "True")
	if outcome := apply(); !outcome.Done() {
		t.Errorf("a ready instance: waiting for %v", outcome.Waiting)
	}
	if got := b.blockers(reconciler.TypeInfo{Group: a.group, Kind: "Gadget"}); got != "" {
		t.Errorf("our own instance blocks: %s", got)
	}

	a.put(a.gadget(b.namespace, "theirs"))
	blocked := "1 foreign instance: Gadget " + b.namespace + "/theirs"
	want := "APIService v1." + a.group + ": " + blocked + "\ntype Gadget.*.corbel.run: " + blocked
	if got := b.blockers(reconciler.TypeInfo{Group: "*.corbel.run", Kind: "Gadget"}); got != want {
		t.Errorf("got blockers %q, want %q", got, want)
	}
	outcome, err := b.delete()
	if err != nil || len(outcome.Waiting) == 0 || !slices.ContainsFunc(outcome.Waiting, func(w report.Wait) bool {
		return w.Key.Kind == "APIService" && w.Reason == report.WaitBlocked && strings.Contains(w.Message, blocked)
	}) {
		t.Errorf("with a foreign instance: %v, waiting for %v", err, outcome.Waiting)
	}
	if names := a.names(); names != b.namespace+"/theirs" {
		t.Errorf("there are %s", names)
	}
	a.drop(b.namespace, "theirs")
	b.until("the deletion", func() bool {
		outcome, err := b.delete()
		return err == nil && outcome.Done()
	})
	service := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService"}}
	if err := b.Get(t.Context(), client.ObjectKey{Name: "v1." + a.group}, service); !apierrors.IsNotFound(err) {
		t.Errorf("the APIService: %v", err)
	}
}
