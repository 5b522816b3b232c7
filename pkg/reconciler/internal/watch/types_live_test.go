// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

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
		// The last object of a stream stays on the stack of whoever reads it.
		return arrived.Load() >= 2 && freed.Load() >= arrived.Load()-1
	})
}
