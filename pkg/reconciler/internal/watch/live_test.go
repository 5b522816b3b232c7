// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
)

// live is a store on a real API server, and a client of an administrator.
type live struct {
	*testing.T
	admin     cluster.Target
	store     *Store
	requests  *requests
	changes   *notifications
	namespace string
}

var counter atomic.Int64

// onServer returns a store for a user.
func onServer(t *testing.T, config *rest.Config, user *rest.Config, options Options) *live {
	t.Helper()
	l := &live{T: t, requests: &requests{}, changes: &notifications{}, namespace: fmt.Sprintf("ns-%d", counter.Add(1))}
	l.admin = targetOn(t, config)
	user = rest.CopyConfig(user)
	user.Wrap(l.requests.wrap)
	options.Label, options.Changed = label, l.changes.add
	options.Reduce = func(o *unstructured.Unstructured) plan.Observation {
		content, _, _ := unstructured.NestedString(o.Object, "data", "text")
		return plan.Observation{
			Existence: plan.Present, UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), ObservedHash: content,
			Ownership: plan.Ownership{OwnerID: o.GetLabels()[label]},
		}
	}
	l.store = New(targetOn(t, user), options)
	t.Cleanup(l.store.Close)
	l.create("{apiVersion: v1, kind: Namespace, metadata: {name: " + l.namespace + "}}")
	return l
}

func targetOn(t *testing.T, config *rest.Config) cluster.Target {
	t.Helper()
	target, err := cluster.New(config, cluster.Options{RequestTimeout: 5 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	return target
}

// requests notes and can cut what goes to the server.
type requests struct {
	mu     sync.Mutex
	sent   []string
	cancel []context.CancelFunc
}

func (r *requests) wrap(next http.RoundTripper) http.RoundTripper {
	return &noting{requests: r, next: next}
}

type noting struct {
	*requests
	next http.RoundTripper
}

func (n *noting) WrappedRoundTripper() http.RoundTripper { return n.next }

func (n *noting) RoundTrip(request *http.Request) (*http.Response, error) {
	query, verb := request.URL.Query(), "list"
	switch {
	case query.Get("watch") == "true" && query.Get("sendInitialEvents") == "true":
		verb = "watchlist"
	case query.Get("watch") == "true":
		verb = "watch"
	}
	ctx, cancel := context.WithCancel(request.Context())
	n.mu.Lock()
	n.sent = append(n.sent, verb+" "+request.URL.Path)
	n.cancel = append(n.cancel, cancel)
	n.mu.Unlock()
	return n.next.RoundTrip(request.WithContext(ctx))
}

// cut ends all requests under way.
func (r *requests) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.cancel {
		cancel()
	}
	r.cancel = nil
}

// drain returns and removes what was sent.
func (r *requests) drain() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	sent := r.sent
	r.sent = nil
	return sent
}

func (l *live) place(group, version, kind string) Place {
	l.Helper()
	var resource cluster.Resource
	l.eventually("the type is served", func() bool {
		var err error
		resource, err = l.admin.Types().Resolve(l.Context(), schema.GroupVersionKind{Group: group, Version: version, Kind: kind})
		return err == nil
	})
	place := Place{Resource: resource}
	if resource.Namespaced {
		place.Namespace = l.namespace
	}
	return place
}

// create creates an object from YAML.
func (l *live) create(text string) *unstructured.Unstructured {
	l.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		l.Fatal(err)
	}
	var created *unstructured.Unstructured
	l.eventually("the object is created", func() bool {
		resource, err := l.admin.Types().Resolve(l.Context(), object.GroupVersionKind())
		if err != nil {
			return false
		}
		if object.GetNamespace() == "" && resource.Namespaced {
			object.SetNamespace(l.namespace)
		}
		created, err = l.admin.Objects().Create(l.Context(), resource, object, "test")
		return err == nil
	})
	return created
}

// configMap creates a ConfigMap of owner a.
func (l *live) configMap(name, text string) *unstructured.Unstructured {
	l.Helper()
	return l.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", labels: {" + label + ": a}}, data: {text: " + text + "}}")
}

// patch changes an object.
func (l *live) patch(place Place, name, patch string) *unstructured.Unstructured {
	l.Helper()
	changed, err := l.admin.Objects().Patch(l.Context(), place.Resource, place.Namespace, name, types.MergePatchType, []byte(patch), "test")
	if err != nil {
		l.Fatal(err)
	}
	return changed
}

func (l *live) remove(place Place, object *unstructured.Unstructured) {
	l.Helper()
	if _, _, err := l.admin.Objects().Delete(context.WithoutCancel(l.Context()), place.Resource, place.Namespace, object.GetName(), object.GetUID(), "", metav1.DeletePropagationBackground); err != nil {
		l.Fatal(err)
	}
}

func (l *live) keep(places ...Place) {
	l.Helper()
	l.store.Keep("a", places)
	ctx, cancel := context.WithTimeout(l.Context(), 30*time.Second)
	defer cancel()
	l.store.Wait(ctx, places)
}

// sees waits for a record.
func (l *live) sees(place Place, name, text string) {
	l.Helper()
	l.eventually("a record of "+name+" with "+text, func() bool {
		o, known, _ := l.store.Look(place, name)
		return known && o.ObservedHash == text
	})
}

// hears waits for the notification of a change.
func (l *live) hears(want string) {
	l.Helper()
	l.eventually("the notification: "+want, func() bool {
		l.changes.mu.Lock()
		defer l.changes.mu.Unlock()
		return slices.ContainsFunc(l.changes.changes, func(c Change) bool {
			return c.Owner+": "+c.Key.Name+" "+c.What.String() == want
		})
	})
}

func (l *live) eventually(what string, holds func() bool) {
	l.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			l.Fatalf("%s: not within a minute; requests: %q", what, l.requests.drain())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func shared(t *testing.T, options Options) *live {
	t.Helper()
	config := env.Shared(t).Config()
	return onServer(t, config, config, options)
}

const (
	readRole    = "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: read}, rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}]}"
	readBinding = `{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: read},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: read},
		subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: tenant}]}`
)

func TestAUserWithRightsInItsNamespaceWatchesItAndContinuesWithoutThem(t *testing.T) {
	environment := env.Shared(t)
	tenant, err := environment.ConfigFor("tenant")
	if err != nil {
		t.Fatal(err)
	}
	l := onServer(t, environment.Config(), tenant, Options{Retry: time.Second})
	maps := l.place("", "v1", "ConfigMap")
	l.configMap("one", "first")
	l.keep(maps)
	if _, known, watched := l.store.Look(maps, "one"); known || watched {
		t.Errorf("without rights: %t, %t", known, watched)
	}

	l.create(readRole)
	binding := l.create(readBinding)
	l.sees(maps, "one", "first")
	if sent := l.requests.drain(); slices.ContainsFunc(sent, func(request string) bool { return request[:4] == "list" }) {
		t.Errorf("a list although watches start with one: %q", sent)
	}
	l.patch(maps, "one", `{"data":{"text":"second"}}`)
	l.hears("a: one Content")

	bindings := l.place("rbac.authorization.k8s.io", "v1", "RoleBinding")
	l.remove(bindings, binding)
	l.requests.drain()
	l.eventually("the watch is not believed any more", func() bool {
		l.requests.cut()
		_, _, watched := l.store.Look(maps, "one")
		return !watched
	})
	l.patch(maps, "one", `{"data":{"text":"third"}}`)
	l.create(readBinding)
	l.sees(maps, "one", "third")
}

func TestAWatchThatStartsWithAListIsTheOnlyRequest(t *testing.T) {
	l := shared(t, Options{})
	maps := l.place("", "v1", "ConfigMap")
	l.configMap("one", "first")
	l.keep(maps)
	if o, known, watched := l.store.Look(maps, "one"); !known || !watched || o.ObservedHash != "first" {
		t.Errorf("%+v, %t, %t", o, known, watched)
	}
	l.patch(maps, "one", `{"data":{"text":"second"}}`)
	l.sees(maps, "one", "second")
	l.hears("a: one Content")
	if d := cmp.Diff([]string{"watchlist /api/v1/configmaps"}, l.requests.drain()); d != "" {
		t.Error(d)
	}
}

func definition(scope string) string {
	return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.watch.example.com}
spec:
  group: watch.example.com
  scope: ` + scope + `
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]`
}

const thing = "{apiVersion: watch.example.com/v1, kind: Thing, metadata: {name: one, labels: {" + label + ": a}}, data: {text: first}}"

func TestATypeThatComesBackWithAnotherScopeIsWatched(t *testing.T) {
	l := shared(t, Options{Retry: time.Second})
	definitions := l.place("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
	before := l.create(definition("Namespaced"))
	things := l.place("watch.example.com", "v1", "Thing")
	l.create(thing)
	l.keep(things)
	l.sees(things, "one", "first")

	l.remove(definitions, before)
	l.hears("a: one Vanished")
	l.eventually("the type is gone", func() bool {
		_, err := l.admin.Objects().Get(t.Context(), definitions.Resource, "", before.GetName())
		return cluster.IsNotFound(err, definitions.Resource, before.GetName())
	})
	l.eventually("its place is not watched", func() bool {
		l.requests.cut()
		_, _, watched := l.store.Look(things, "one")
		return !watched
	})

	after := l.create(definition("Cluster"))
	t.Cleanup(func() { l.remove(definitions, after) })
	l.admin.Types().Forget(things.Resource.GVK())
	everywhere := l.place("watch.example.com", "v1", "Thing")
	if everywhere.Resource.Namespaced {
		t.Fatal("the type has the old scope")
	}
	l.create(thing)
	l.keep(everywhere)
	l.sees(everywhere, "one", "first")
	if _, known, _ := l.store.Look(things, "one"); known {
		t.Error("known at the old place")
	}
}

func TestNothingIsKeptOfSecretsButTheRecord(t *testing.T) {
	var arrived, freed atomic.Int64
	l := shared(t, Options{})
	reduce := l.store.options.Reduce
	l.store.options.Reduce = func(o *unstructured.Unstructured) plan.Observation {
		arrived.Add(1)
		runtime.AddCleanup(o, func(int) { freed.Add(1) }, 0)
		return reduce(o)
	}
	secrets := l.place("", "v1", "Secret")
	secret := "{apiVersion: v1, kind: Secret, metadata: {name: one, labels: {" + label + ": a}}, stringData: {text: " + strings.Repeat("s3cret", 10) + "}}"
	l.create(secret)
	l.keep(secrets)
	l.patch(secrets, "one", `{"stringData":{"text":"another"}}`)
	l.hears("a: one Content")
	l.eventually("what arrived is freed", func() bool {
		runtime.GC()
		// The last object of a stream stays on the stack of its reader.
		return arrived.Load() >= 2 && freed.Load() >= arrived.Load()-1
	})
}
