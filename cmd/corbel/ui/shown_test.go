// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
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
	s := check.Must(New(unreachable, Options{}))(t)
	kinds := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{{
		GroupVersion: "shop.example.com/v1", APIResources: []metav1.APIResource{{Name: "shops", Kind: "Shop", Namespaced: true, Verbs: []string{"get", "list"}, Categories: []string{inspect.Category}}},
	}}}}
	s.cluster.Client = c
	s.cluster.again = func() *inspect.Reader { return &inspect.Reader{Client: c, Mapper: mapper, Discovery: kinds} }
	t.Cleanup(s.Close)
	return s
}

// refusing lets requests fail: "get Shop market/corner", "list PodList market".
func refusing(s *Server, refuse func(request string) error) {
	c := interceptor.NewClient(s.cluster.Client, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			if err := refuse(fmt.Sprintf("get %s %s", object.GetObjectKind().GroupVersionKind().Kind, key)); err != nil {
				return err
			}
			return c.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			in := (&client.ListOptions{}).ApplyOptions(options).Namespace
			if err := refuse(fmt.Sprintf("list %s %s", list.GetObjectKind().GroupVersionKind().Kind, in)); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
	})
	again := s.cluster.again
	s.cluster.Client = c
	s.cluster.again = func() *inspect.Reader {
		reader := again()
		reader.Client = c
		return reader
	}
}

func (s *Server) answer(path string) (int, string) { return s.answerTo(http.MethodGet, path, "") }

func (s *Server) answerTo(method, path, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("X-Corbel", "1")
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
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
	for _, path := range []string{"object" + about + "&object=/Pod/market/pod", "object" + about + "&object=%3Cimg%3E", "why" + about, "events" + about, "spec" + about, "history" + about, "why?type=" + "%3Cimg%3E" + "&name=x", "none%3Cimg%3E"} {
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
			for _, answer := range []string{"GET object", "GET why", "GET history", "GET events", "GET spec", "POST diff"} {
				method, name, _ := strings.Cut(answer, " ")
				if status, text := s.answerTo(method, "/api/"+name+about+"&object=/ConfigMap/market/a", `{"revision":1}`); !json.Valid([]byte(text)) || status == http.StatusForbidden {
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
				_, err := json.Marshal(dependentOf(d, []*unstructured.Unstructured{{Object: object}}))
				_, yamlErr := yamlOf(d.Object)
				if containersOf(d.Object); err != nil || yamlErr != nil {
					t.Errorf("%s with %v at %s: %v %v", kind, value, path, err, yamlErr)
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

func TestAnObjectIsShownWithoutValuesOfASecret(t *testing.T) {
	secret := dependentNamed("Secret", "a")
	secret.Object["data"], secret.Object["stringData"] = map[string]any{"password": "c2VjcmV0"}, map[string]any{"token": "secret"}
	secret.SetAnnotations(map[string]string{"example.com/copy": "secret", corev1.LastAppliedConfigAnnotation: "secret"})
	secret.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "secret"}})
	text := check.Must(yamlOf(inspect.Component{}.Assess(v1alpha1.InventoryItem{}, secret).Object))(t)
	check.SameNamed(t, "the Secret", `apiVersion: v1
data:
  password: '***'
kind: Secret
metadata:
  annotations:
    example.com/copy: '***'
  labels:
    shop.example.com/owner-id: `+ownerID+`
  name: a
  namespace: market
stringData:
  token: '***'
`, text)
}

func TestTheContainerThatHasFailedIsTheFirst(t *testing.T) {
	pod := dependentNamed("Pod", "a")
	pod.Object["spec"] = map[string]any{"initContainers": []any{map[string]any{"name": "init"}}, "containers": []any{map[string]any{"name": "web"}, map[string]any{"name": "proxy"}}}
	check.SameNamed(t, "all run", "web proxy init", strings.Join(containersOf(pod), " "))
	waiting := map[string]any{"waiting": map[string]any{"reason": "ImagePullBackOff"}}
	pod.Object["status"] = map[string]any{"containerStatuses": []any{map[string]any{"name": "proxy", "state": waiting}}}
	check.SameNamed(t, "one waits", "proxy web init", strings.Join(containersOf(pod), " "))
}

func TestALongLogIsShownUpToItsEnd(t *testing.T) {
	long := strings.Repeat(strings.Repeat("x", 4<<10)+"\n", 400) + "the latest line\n"
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, err := strconv.Atoi(r.URL.Query().Get("limitBytes"))
		check.NoError(t, err)
		_, _ = w.Write([]byte(long[:min(limit, len(long))])) // as the kubelet does
	}))
	t.Cleanup(api.Close)
	s := offline(t, corner("a message", "v1 Pod market/pod"), dependentNamed("Pod", "pod"))
	s.cluster.Config = &rest.Config{Host: api.URL}
	var log struct{ Text string }
	status, text := s.answer("/api/log" + about + "&object=/Pod/market/pod")
	if err := json.Unmarshal([]byte(text), &log); status != http.StatusOK || err != nil || !strings.HasSuffix(log.Text, "\nthe latest line\n") || len(log.Text) > logBytes {
		t.Errorf("%d %v: %d bytes", status, err, len(text))
	}
}

func TestAPanicIsAnError(t *testing.T) {
	if err := guarded(func() error { panic("of a test") }); err == nil || err.Error() != "panicked: of a test" {
		t.Error(err)
	}
}

func TestAPageThatReadsSlowlyGetsTheLatestOfEachThing(t *testing.T) {
	q := newQueue()
	for i := range 10_000 {
		q.put(fmt.Sprint(i%3), event{"component", i})
	}
	if events := q.take(); len(events) != 3 || events[0].data != 9997 || events[1].data != 9998 || events[2].data != 9999 {
		t.Errorf("%v", events)
	}
	if events := q.take(); len(events) != 0 {
		t.Errorf("%v", events)
	}
}

func TestNoEventIsSentBeforeOneThatIsOlder(t *testing.T) {
	for name, test := range map[string]struct{ keys, want []string }{
		"a dependent that changes after the tree":  {[]string{"dependent a", "tree", "dependent a"}, []string{"tree 1", "dependent a 2"}},
		"a dependent that changed before the tree": {[]string{"dependent a", "tree"}, []string{"tree 1"}},
		"a tree after another":                     {[]string{"tree", "dependent a", "component c", "tree"}, []string{"component c 2", "tree 3"}},
	} {
		q := newQueue()
		for i, key := range test.keys {
			q.put(key, event{key, i})
		}
		var got []string
		for _, e := range q.take() {
			got = append(got, fmt.Sprint(e.name, " ", e.data))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestATreeThatCannotBeReadSaysWhy(t *testing.T) {
	set := func(name string) *unstructured.Unstructured {
		object := dependentNamed("StatefulSet", name)
		object.SetAPIVersion("apps/v1")
		object.SetUID(types.UID(name))
		return object
	}
	pod := dependentNamed("Pod", "db-0")
	pod.SetOwnerReferences([]metav1.OwnerReference{{UID: "db", Controller: new(true)}})
	s := offline(t, corner("a message", "apps/v1 StatefulSet market/db", "apps/v1 StatefulSet other/cache"), set("db"), set("cache"), pod)
	refused := ""
	refuse := func(string) error { return errors.New("refused by the test") }
	refusing(s, func(request string) error {
		if refused != "" && strings.HasPrefix(request, refused) {
			return refuse(request)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	l := newLive(s, address{"shops.shop.example.com", "market", "corner"}, newQueue())
	t.Cleanup(l.running.Wait)
	t.Cleanup(cancel)
	for _, step := range []struct {
		refused  string
		panics   bool
		failures int
		want     string
	}{
		{"get Shop", false, 1, "problem refused by the test"},
		{"", false, 0, "tree"},
		{"", false, 0, ""},
		{"get Shop", true, 1, "problem panicked"},
		{"get StatefulSet", true, 2, "problem panicked"}, // in a goroutine of its own
		{"", false, 0, "tree"},
		{"list PodList other", false, 0, "tree refused by the test"},
		{"list PodList other", false, 0, ""},
		{"", false, 0, "tree"},
	} {
		refused = step.refused
		refuse = func(string) error { return errors.New("refused by the test") }
		if step.panics {
			refuse = func(string) error { panic("of the test") }
		}
		_ = l.readAll(ctx)
		var got []string
		for _, e := range l.queue.take() {
			data := check.Must(json.Marshal(e.data))(t)
			got = append(got, e.name+" "+string(data))
		}
		name, text, _ := strings.Cut(step.want, " ")
		if all := strings.Join(got, "\n"); l.failures != step.failures || !strings.HasPrefix(all, name) || !strings.Contains(all, text) || name == "" && all != "" {
			t.Errorf("%+v: %d failures, %s", step, l.failures, all)
		}
	}
	for key, want := range map[string]string{"/Pod/other/cache-0": "refused by the test", "/Pod/market/db-0": `"state":"`} {
		refused = "list PodList other"
		if _, text := s.answer("/api/object" + about + "&object=" + key); !strings.Contains(text, want) {
			t.Errorf("%s: %s", key, text)
		}
	}
	// What can be read of the pods is shown, and what cannot stays.
	db, cache := l.shown["apps/StatefulSet/market/db"], l.shown["apps/StatefulSet/other/cache"]
	db.sent.Pods, cache.sent.Pods = nil, podsOf([]*unstructured.Unstructured{dependentNamed("Pod", "before")})
	refused = "list PodList other"
	l.readPods(ctx)
	if len(db.sent.Pods) != 1 || db.sent.Pods[0].Name != "db-0" || len(cache.sent.Pods) != 1 {
		t.Errorf("pods: %+v and %+v", db.sent.Pods, cache.sent.Pods)
	}
}

func TestDiscoveryIsAskedOnceForAllCallers(t *testing.T) {
	s := offline(t)
	again, asked, answer := s.cluster.again, make(chan struct{}, 10), make(chan struct{})
	s.cluster.again = func() *inspect.Reader {
		asked <- struct{}{}
		<-answer
		return again()
	}
	ctx, cancel := context.WithCancel(t.Context())
	impatient, patient := make(chan error, 1), make(chan error, 1)
	wait := func(ctx context.Context, done chan<- error) {
		_, err := s.cluster.known(ctx, time.Hour)
		done <- err
	}
	go wait(ctx, impatient)
	go wait(t.Context(), patient)
	<-asked
	cancel()
	if err := <-impatient; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(answer)
	if err := <-patient; err != nil || len(asked) > 0 {
		t.Errorf("%v, and discovery was asked %d times more", err, len(asked))
	}
}

func TestTheTypesThatAreServedAreFollowed(t *testing.T) {
	s := offline(t, corner("a message"))
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(cancel)
	q := newQueue()
	state := newFleetState()
	state.queues[q] = true
	f := s.fleet
	f.state = state
	known := check.Must(s.cluster.known(ctx, time.Hour))(t)
	another := known.types[0]
	another.Version = "v2"
	for _, step := range []struct {
		what   string
		types  []inspect.Type
		isPart bool
		gone   bool
		kind   string
	}{
		{"the types are followed", known.types, false, false, "shop.example.com/v1, Kind=Shop"},
		{"the same types are followed", known.types, false, false, "shop.example.com/v1, Kind=Shop"},
		{"a type that is not listed is followed", nil, true, false, "shop.example.com/v1, Kind=Shop"},
		{"another version is followed", []inspect.Type{another}, false, false, "shop.example.com/v2, Kind=Shop"},
		{"no type is followed", nil, false, true, ""},
	} {
		f.update(state, func() {
			f.followTypes(ctx, state, &running, &knownTypes{reader: known.reader, types: step.types, isPart: step.isPart})
		})
		env.Until(t, step.what, func() (err error) {
			f.update(state, func() {
				if list := state.all().data.(fleetList); !state.isComplete || len(list.Items) == 0 != step.gone {
					err = fmt.Errorf("%+v", list)
				}
			})
			return err
		})
		f.update(state, func() {
			kind := ""
			for _, followed := range state.types {
				kind += followed.kind.String()
			}
			check.SameNamed(t, step.what, step.kind, kind)
		})
		for _, e := range q.take() {
			if c, ok := e.data.(change); ok && c.Op == "gone" != step.gone {
				t.Errorf("%s: %+v", step.what, c)
			}
		}
	}
}

func TestAClusterThatCannotBeReachedIsNamed(t *testing.T) {
	s := newServer(t, Options{})
	started := time.Now()
	if status, text := s.answer("/api/why" + about); status != http.StatusBadGateway || !strings.Contains(text, "connection refused") || time.Since(started) > patience {
		t.Errorf("%d %s", status, text)
	}
	q := newQueue()
	t.Cleanup(s.fleet.subscribe(q, false))
	<-q.wake
	if list := q.take()[0].data.(fleetList); !list.IsDown || !strings.Contains(list.Message, "connection refused") {
		t.Errorf("%+v", list)
	}
}

func TestATypeThatMayNotBeListedDoesNotHideOthers(t *testing.T) {
	q, state := newQueue(), newFleetState()
	state.queues[q] = true
	state.types = map[string]*typeState{
		"shops.shop.example.com": {tried: true, items: map[address]componentSummary{{"shops.shop.example.com", "market", "corner"}: {Name: "corner"}}},
		"toys.shop.example.com":  {tried: true, problem: "Toys cannot be listed: you may not"},
	}
	state.checkComplete()
	if list := q.take()[0].data.(fleetList); len(list.Items) != 1 || len(list.Problems) != 1 {
		t.Errorf("%+v", list)
	}
	for i, step := range []struct {
		problem string
		events  int
	}{{"Toys cannot be listed: you may not", 0}, {"", 1}, {"", 0}, {"Toys cannot be listed: not now", 1}} {
		state.setProblem(state.types["toys.shop.example.com"], step.problem)
		if events := q.take(); len(events) != step.events || len(events) > 0 && len(events[0].data.(fleetList).Problems) > len(step.problem) {
			t.Errorf("%d: %v", i, events)
		}
	}
}

func TestOutputsAndRequirementsAreShown(t *testing.T) {
	c := corner("ready")
	set(c.Object, []any{map[string]any{"apiVersion": "db.example.com/v1", "kind": "Database", "name": "main"}, map[string]any{"apiVersion": "v1", "kind": "Node", "name": "a", "namespace": "other"}, "odd"}, "spec", "requires")
	before := inventoryOf(c)
	set(c.Object, map[string]any{"host": "corner.example.com"}, "status", "outputs")
	set(c.Object, []any{"password"}, "status", "secretOutputs")
	if inventoryOf(c) == before {
		t.Error("new outputs do not let the tree be sent again")
	}
	_, v, err := offline(t, c).read(t.Context(), address{"shops.shop.example.com", "market", "corner"})
	check.NoError(t, err)
	shown := v.tree()
	check.Equal(t, map[string]string{"host": "corner.example.com"}, shown.Outputs)
	check.Equal(t, []string{"password"}, shown.SecretOutputs)
	check.Same(t, "db.example.com/Database/market/main /Node/other/a", shown.Component.Requires)
}
