// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/wire"
)

func TestWhatIsThereIsPresent(t *testing.T) {
	recorder := wire.NewRecorder()
	observer := observerOn(targetOn(t, recorder.Config()))
	object := recorder.Put(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: map, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z", finalizers: [example.com/f]}}`))
	d := &plan.Desired{Key: keyOf(object), Version: "v1", Manifest: object}
	desired := batch(t, observer, observe.Request{Key: d.Key, Version: "v1", Desired: d})
	recorded := batch(t, observer, observe.Request{Key: d.Key})
	for _, live := range []plan.Observation{desired, recorded} {
		if live.Existence != plan.Present || live.UID != object.GetUID() || live.ResourceVersion != object.GetResourceVersion() ||
			live.ObservedHash == "" || len(live.Finalizers) != 1 || live.CreationTimestamp.IsZero() || !live.DeletionTimestamp.IsZero() || live.Status.Readiness != plan.Ready {
			t.Errorf("got %+v", live)
		}
	}
	if desired.AppliedHash == "" || recorded.AppliedHash != "" {
		t.Errorf("accepted is %q with a manifest and %q without", desired.AppliedHash, recorded.AppliedHash)
	}
	object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	recorder.Put(object)
	if live := batch(t, observer, observe.Request{Key: d.Key, Desired: d}); live.DeletionTimestamp.IsZero() {
		t.Errorf("an object that is being deleted: got %+v", live)
	}
}

func TestOnlyTypesThatDeclareConditionsAreUnjudged(t *testing.T) {
	for schema, want := range map[string]plan.Readiness{
		"{type: object}": plan.Ready,
		"{type: object, properties: {status: {type: object, properties: {conditions: {type: array, items: {type: object}}}}}}": plan.ReadinessUnknown,
	} {
		recorder := wire.NewRecorder()
		recorder.Put(parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.example.com},
			spec: {group: example.com, names: {kind: Foo, plural: foos}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: `+schema+`}}]}}`))
		foo := recorder.Put(parse(t, `{apiVersion: example.com/v1, kind: Foo, metadata: {name: foo, namespace: shop}}`))
		if live := batch(t, observerOn(targetOn(t, recorder.Config())), observe.Request{Key: keyOf(foo), Version: "v1"}); live.Status.Readiness != want {
			t.Errorf("%s: got %+v", schema, live.Status)
		}
	}
}

func TestManyObjectsAreReadAtOnceAndOneThatCannotBeReadHoldsUpNothing(t *testing.T) {
	recorder := wire.NewRecorder()
	observer := observerOn(targetOn(t, recorder.Config()))
	var requests []observe.Request
	for i := range 200 {
		key := plan.Key{Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprintf("map-%d", i)}
		switch i % 4 {
		case 0:
			recorder.Put(parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+key.Name+`, namespace: default}}`))
		case 1:
			key.Name += "/.." // cannot be asked for
		case 2:
			key.Group = "nowhere.example.com"
		}
		requests = append(requests, observe.Request{Key: key, Version: "v1"})
	}
	observed, err := observer.Observe(t.Context(), requests)
	if err != nil || len(observed) != len(requests) {
		t.Fatalf("got %d observations, %v", len(observed), err)
	}
	want := []plan.Existence{plan.Present, plan.Unknown, plan.Absent, plan.Absent}
	for i, request := range requests {
		if live := observed[request.Key]; live.Existence != want[i%4] {
			t.Errorf("%s: got %+v", request.Key, live)
		}
	}
}

func TestTheEndOfTheContextIsTheOnlyError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	observer := observerOn(targetOn(t, wire.NewRecorder().Config()))
	observed, err := observer.Observe(ctx, []observe.Request{{Key: plan.Key{Kind: "ConfigMap", Namespace: "default", Name: "x"}}})
	if !errors.Is(err, context.Canceled) || len(observed) != 0 {
		t.Errorf("got %v, %v", observed, err)
	}

	dead := observerOn(targetOn(t, &rest.Config{Host: "http://127.0.0.1:1"})) // nothing listens there
	var requests []observe.Request
	for i := range 500 {
		requests = append(requests, observe.Request{Key: plan.Key{Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprint(i)}})
	}
	observed, err = dead.Observe(t.Context(), requests)
	if err != nil || len(observed) != len(requests) {
		t.Fatalf("got %d observations, %v", len(observed), err)
	}
	for key, live := range observed {
		if live.Existence != plan.Unknown || live.Message == "" {
			t.Errorf("%s: got %+v", key, live)
		}
	}
}
