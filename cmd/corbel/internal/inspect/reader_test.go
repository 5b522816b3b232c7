// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/check"
)

var (
	shopKind = schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Shop"}
	shopType = Type{GroupVersionKind: shopKind, Resource: "shops", Singular: "shop", Namespaced: true, Component: true}
)

const ownerID = "b7l5rv2kqmbhkl5h3xsvjvzgzs2ud4tc"

// shop is a component with a status.
func shop(status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1", "kind": "Shop",
		"metadata": map[string]any{"namespace": "market", "name": "corner", "uid": "shop-uid", "finalizers": []any{"shop.example.com", "example.com/other"}},
		"status":   status,
	}}
}

// dependent is an object that belongs to the shop.
func dependent(kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	u.SetNamespace("market")
	u.SetName(name)
	u.SetLabels(map[string]string{"shop.example.com/owner-id": ownerID})
	u.SetAnnotations(map[string]string{"shop.example.com/owner": "shop.example.com/Shop/market/corner/shop-uid"})
	return u
}

// server is a server with objects that counts the requests.
type server struct {
	Reader
	mu       sync.Mutex
	requests []string
	refuse   func(request string) error
}

func newServer(objects ...client.Object) *server {
	s := &server{refuse: func(string) error { return nil }}
	mapper := apimeta.NewDefaultRESTMapper(nil)
	mapper.Add(shopKind, apimeta.RESTScopeNamespace)
	for _, kind := range []string{"ConfigMap", "Secret", "Service", "Pod"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), apimeta.RESTScopeNamespace)
	}
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), apimeta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, apimeta.RESTScopeRoot)
	serve := func(request string, answer func() error) error {
		s.mu.Lock()
		s.requests = append(s.requests, request)
		s.mu.Unlock()
		if err := s.refuse(request); err != nil {
			return err
		}
		return answer()
	}
	c := fake.NewClientBuilder().WithIndex(&coordinationv1.Lease{}, "metadata.name", func(lease client.Object) []string { return []string{lease.GetName()} }).WithRESTMapper(mapper).WithObjects(objects...).Build()
	s.Client = interceptor.NewClient(c, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			return serve(fmt.Sprintf("get %s %s", object.GetObjectKind().GroupVersionKind().Kind, key.Name), func() error { return c.Get(ctx, key, object, options...) })
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			return serve("list "+list.GetObjectKind().GroupVersionKind().Kind, func() error { return c.List(ctx, list, options...) })
		},
	})
	s.Mapper = mapper
	s.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "shop.example.com/v1", APIResources: []metav1.APIResource{{Name: "shops", Kind: "Shop", Namespaced: true, Verbs: []string{"get", "list"}, Categories: []string{Category}}},
	}}}}
	return s
}

func (s *server) component(t *testing.T) Component {
	t.Helper()
	c := check.Must(s.Get(t.Context(), shopType, client.ObjectKey{Namespace: "market", Name: "corner"}))(t)
	s.requests = nil
	return c
}

func inventoryOf(names ...string) map[string]any {
	objects := map[string]any{}
	for _, name := range names {
		objects[name] = `{"uid":"x"}`
	}
	return map[string]any{"format": int64(3), "objects": objects}
}

func TestObjectsOfOneTypeAreOneRequest(t *testing.T) {
	s := newServer(shop(map[string]any{"reconciler": "shop.example.com", "ownerID": ownerID, "state": "Ready",
		"inventory": inventoryOf("v1 ConfigMap market/a", "v1 ConfigMap market/b", "v1 ConfigMap market/gone", "v1 Secret market/s")}),
		dependent("ConfigMap", "a"), dependent("ConfigMap", "b"), dependent("Secret", "s"))
	dependents := check.Must(s.Dependents(t.Context(), s.component(t)))(t)
	got := map[string]State{}
	for _, d := range dependents {
		got[d.String()] = d.State
	}
	want := map[string]State{"ConfigMap market/a": StateReady, "ConfigMap market/b": StateReady, "ConfigMap market/gone": StateMissing, "Secret market/s": StateReady}
	check.Equal(t, want, got)
	if len(s.requests) != 4 { // the list, the one that it lacks, the single one, and the list of shared types
		t.Errorf("requests: %q", s.requests)
	}
}

// TestSharedTypesAreShownBeforeTheDependents has a definition that all components share, and one of another operator.
func TestSharedTypesAreShownBeforeTheDependents(t *testing.T) {
	definition := func(name, label string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "status": map[string]any{
			"conditions": []any{map[string]any{"type": "NamesAccepted", "status": "True"}, map[string]any{"type": "Established", "status": "True"}},
		}}}
		u.SetName(name)
		u.SetLabels(map[string]string{label: "true"})
		return u
	}
	s := newServer(shop(map[string]any{"reconciler": "shop.example.com", "ownerID": ownerID, "state": "Ready", "inventory": inventoryOf("v1 ConfigMap market/a")}),
		dependent("ConfigMap", "a"), definition("queues.queue.example.com", "shop.example.com/shared"), definition("others.queue.example.com", "other.example.com/shared"))
	dependents := check.Must(s.Dependents(t.Context(), s.component(t)))(t)
	var got []string
	for _, d := range dependents {
		got = append(got, d.Stage.Title+": "+d.String()+" "+string(d.State))
	}
	want := []string{"shared by all components: CustomResourceDefinition queues.queue.example.com Ready", "wave 0: ConfigMap market/a Ready"}
	check.Equal(t, want, got)
}

func TestAForbiddenListIsReadOneByOne(t *testing.T) {
	s := newServer(shop(map[string]any{"reconciler": "shop.example.com", "ownerID": ownerID, "state": "Ready",
		"inventory": inventoryOf("v1 ConfigMap market/a", "v1 ConfigMap market/b")}), dependent("ConfigMap", "a"), dependent("ConfigMap", "b"))
	c := s.component(t)
	s.refuse = func(request string) error {
		if strings.HasPrefix(request, "list") || strings.HasSuffix(request, " b") {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("not you"))
		}
		return nil
	}
	dependents, err := s.Dependents(t.Context(), c)
	if err != nil || dependents[0].State != StateReady || dependents[1].State != StateForbidden {
		t.Errorf("%v %v", dependents, err)
	}
	s.refuse = func(request string) error { return errors.New("connection refused") }
	if _, err := s.Dependents(t.Context(), c); err == nil {
		t.Error("a server that does not answer is no error")
	}
}

func TestADamagedInventoryShowsWhatCanBeRead(t *testing.T) {
	for name, test := range map[string]struct {
		inventory map[string]any
		want      string
		state     string
	}{
		"a lost Secret": {map[string]any{"format": int64(2), "chunks": map[string]any{
			"generation": int64(1), "current": int64(1), "revision": int64(1),
			"chunks": []any{map[string]any{"count": int64(1), "hash": "abc", "revision": int64(1)}, map[string]any{}},
		}}, "corner-inventory-", "it does not exist"},
		"a bad head":     {map[string]any{"format": int64(2), "chunks": map[string]any{"generation": int64(1), "current": int64(5)}}, "the head of the inventory", "never started"},
		"a newer format": {map[string]any{"format": int64(99)}, "has format 99", "newer version"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(shop(map[string]any{"reconciler": "shop.example.com", "ownerID": ownerID, "state": "Ready", "inventory": test.inventory}))
			_, err := s.Dependents(t.Context(), s.component(t))
			check.Fails(t, err, test.want, test.state)
			if IsLost(err) == (name == "a newer format") {
				t.Errorf("lost: %v", IsLost(err))
			}
		})
	}
}

func TestAStatusOfAnotherShapeIsReported(t *testing.T) {
	s := newServer(shop(map[string]any{"state": map[string]any{}, "reconciler": "shop.example.com"}))
	c := s.component(t)
	if c.Mistake == nil || !strings.Contains(c.Mistake.Error(), "the status of Shop market/corner cannot be read") {
		t.Error(c.Mistake)
	}
	if _, err := s.Dependents(t.Context(), c); err != nil && IsLost(err) {
		t.Error(err)
	}
}

func TestTheOwnerOfAPodIsFoundByOwnerReferences(t *testing.T) {
	isController := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "market", Name: "pod", Labels: map[string]string{"shop.example.com/owner-id": ownerID},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Service", Name: "web", UID: "u", Controller: &isController}}}}
	s := newServer(shop(map[string]any{"state": "Ready"}), dependent("Service", "web"), pod)
	podType := Type{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"), Namespaced: true}
	origin, err := s.Owner(t.Context(), podType, client.ObjectKey{Namespace: "market", Name: "pod"})
	if err != nil || len(origin.Chain) != 2 || origin.Named != "Shop market/corner" || origin.Owner == nil {
		t.Errorf("%+v %v", origin, err)
	}
	s = newServer(dependent("Service", "web"), pod) // the component is gone
	origin, err = s.Owner(t.Context(), podType, client.ObjectKey{Namespace: "market", Name: "pod"})
	if err != nil || origin.Owner != nil || origin.Named != "Shop market/corner" {
		t.Errorf("%+v %v", origin, err)
	}
}

// TestADefinitionThatIsSharedBelongsToItsReconciler has a definition with the owner of a component, from before it was shared, and
// another object with a label of that name.
func TestADefinitionThatIsSharedBelongsToItsReconciler(t *testing.T) {
	definition, other := dependent("CustomResourceDefinition", "queues.queue.example.com"), dependent("ConfigMap", "other")
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetNamespace("")
	for _, object := range []*unstructured.Unstructured{definition, other} {
		object.SetLabels(map[string]string{"shop.example.com/owner-id": ownerID, "shop.example.com/shared": "true"})
	}
	s := newServer(shop(map[string]any{"state": "Ready"}), definition, other)
	for _, test := range []struct {
		object client.Object
		named  string
	}{{definition, ""}, {other, "Shop market/corner"}} {
		kind := Type{GroupVersionKind: test.object.GetObjectKind().GroupVersionKind(), Namespaced: test.object.GetNamespace() != ""}
		origin, err := s.Owner(t.Context(), kind, client.ObjectKeyFromObject(test.object))
		if err != nil || origin.Reconciler != "shop.example.com" || origin.Named != test.named {
			t.Errorf("%s: %+v %v", test.object.GetName(), origin, err)
		}
	}
}

func TestValuesOfSecretsDoNotLeave(t *testing.T) {
	secret := dependent("Secret", "s")
	secret.Object["data"] = map[string]any{"password": "Y2FuYXJ5"}
	secret.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "Y2FuYXJ5", "note": "canary"})
	secret.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "shop.example.com", FieldsV1: metav1.NewFieldsV1(`{"f:type":{}}`)},
		{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(`{"f:data":{"f:password":{}},"f:metadata":{"f:annotations":{"f:note":{}}}}`)},
	})
	var d Dependent
	d.assess("shop.example.com", secret, nil)
	want := []Field{{"data.password", `"***"`}, {"metadata.annotations.note", "***"}}
	check.Equal(t, want, d.Changes[0].Fields)
	delete(d.Object.Object["metadata"].(map[string]any), "managedFields")
	if text := fmt.Sprint(d.Object.Object["data"]); strings.Contains(text, "Y2FuYXJ5") || d.Object.GetAnnotations()[corev1.LastAppliedConfigAnnotation] != "" {
		t.Error(text)
	}
}

func TestChangesOfOthersAreNamedWithFieldAndValue(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"spec": map[string]any{"replicas": int64(5), "template": map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "b"}}}}},
	}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "shop.example.com", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:selector":{}}}`)},
		{Manager: "kubectl-edit", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:selector":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{},"f:image":{}}}}}}}`)},
		{Manager: "hpa", Subresource: "scale", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:replicas":{}}}`)},
		{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:x":{}}}}`)},
	})
	want := []Change{{Manager: "kubectl-edit", Fields: []Field{{"spec.template.spec.containers[name=web].image", `"b"`}}}}
	check.Equal(t, want, changesBy(object, "shop.example.com"))
	if got := changesBy(object, "another.example.com"); got != nil {
		t.Error(got)
	}
}

func TestWhatAControllerOwnsByDesignIsNoDifference(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}}
	object.SetManagedFields([]metav1.ManagedFieldsEntry{
		{Manager: "shop.example.com", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:selector":{}}}`)},
		{Manager: "kubectl-rollout", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/restartedAt":{}}}}}}`)},
	})
	if got := changesBy(object, "shop.example.com"); got != nil {
		t.Error(got)
	}
}

func TestAnAmbiguousKindListsItsMatches(t *testing.T) {
	s := newServer()
	s.Discovery = &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "a.example.com/v1", APIResources: []metav1.APIResource{{Name: "shops", Kind: "Shop", Verbs: []string{"get"}, Categories: []string{Category}}}},
		{GroupVersion: "b.example.com/v1", APIResources: []metav1.APIResource{{Name: "shops", Kind: "Shop", Verbs: []string{"get"}, Categories: []string{Category}}}},
		{GroupVersion: "c.example.com/v1", APIResources: []metav1.APIResource{{Name: "shops", Kind: "Shop", Verbs: []string{"get"}}}},
	}}}
	_, err := s.Resolve("shops")
	if err == nil || err.Error() != `"shops" may mean shops.a.example.com or shops.b.example.com` {
		t.Error(err)
	}
	if found, err := s.Resolve("shops.c.example.com"); err != nil || found.Group != "c.example.com" {
		t.Errorf("%v %v", found, err)
	}
}

func TestStagesFollowTheOrderOfApplying(t *testing.T) {
	for _, test := range []struct {
		item v1alpha1.InventoryItem
		want string
	}{
		{v1alpha1.InventoryItem{RunOn: "pre-delete"}, "before the deletion"}, {v1alpha1.InventoryItem{ApplyOrder: -20000}, "hooks before"},
		{v1alpha1.InventoryItem{ApplyOrder: -3}, "wave -3"}, {v1alpha1.InventoryItem{}, "wave 0"}, {v1alpha1.InventoryItem{ApplyOrder: 20000}, "hooks after"},
		{v1alpha1.InventoryItem{RunOn: "post-delete"}, "after the deletion"},
	} {
		if got := stageOf(test.item).Title; got != test.want {
			t.Errorf("%+v: %s", test.item, got)
		}
	}
}

func TestAPodSaysWhatIsWrongAsTheConditionReadyDoes(t *testing.T) {
	for name, test := range map[string]struct{ status, want string }{
		"no node takes it":        {`{phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/2 nodes are available: 2 Insufficient cpu. No preemption."}]}`, "Unschedulable: 0/2 nodes are available: 2 Insufficient cpu"},
		"a probe that fails":      {`{phase: Running, conditions: [{type: Ready, status: "False", reason: ContainersNotReady}], containerStatuses: [{name: web, state: {running: {}}}]}`, "container web is not ready"},
		"it is ready":             {`{phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: web, ready: true, state: {running: {}}}]}`, ""},
		"a pod that shows little": {`{phase: Pending}`, "PodPending: Pod is in the Pending phase"},
	} {
		pod := dependent("Pod", "corner-web-1")
		check.NoError(t, yaml.Unmarshal([]byte("status: "+test.status), &pod.Object))
		_, message := PodState(pod)
		check.SameNamed(t, name, test.want, message)
		if d := (Component{}).Assess(v1alpha1.InventoryItem{Version: "v1", Kind: "Pod"}, pod); test.want != "" {
			check.SameNamed(t, name+", as a dependent", test.want, d.Message)
		}
	}
}
