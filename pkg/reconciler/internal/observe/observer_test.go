// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/env"
)

func TestWhatIsThereIsPresentAndWhatIsNotIsAbsent(t *testing.T) {
	target := targetOn(t, env.Shared(t).Config())
	observer := observerOn(target)
	object := create(t, target, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+unique("map")+`, namespace: default, finalizers: [example.com/f]}}`)
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
	remove(t, target, object)
	if live := batch(t, observer, observe.Request{Key: d.Key, Desired: d}); live.DeletionTimestamp.IsZero() {
		t.Errorf("an object that is being deleted: got %+v", live)
	}
	for _, key := range []plan.Key{
		{Kind: "ConfigMap", Namespace: "default", Name: "missing"},
		{Kind: "ConfigMap", Namespace: "nowhere", Name: "missing"},
		{Kind: "Namespace", Name: "nowhere"},
	} {
		if live := batch(t, observer, observe.Request{Key: key, Version: "v1"}); live.Existence != plan.Absent {
			t.Errorf("%s: got %+v", key, live)
		}
	}
}

func TestWhatMustNotBeReadIsUnknown(t *testing.T) {
	config, err := env.Shared(t).ConfigFor(unique("jane"))
	if err != nil {
		t.Fatal(err)
	}
	observer := observerOn(targetOn(t, config))
	live := batch(t, observer, observe.Request{Key: plan.Key{Kind: "ConfigMap", Namespace: "default", Name: "x"}, Version: "v1"})
	if live.Existence != plan.Unknown || live.NotServed || !strings.Contains(live.Message, "forbidden") {
		t.Errorf("got %+v", live)
	}
}

func TestATypeThatIsNotServedIsUnknownWhileItIsDesiredAndAbsentWhenItIsGone(t *testing.T) {
	target := targetOn(t, env.Shared(t).Config())
	observer := observerOn(target)
	group := unique("g") + ".example.com"
	key := plan.Key{Group: group, Kind: "Foo", Namespace: "default", Name: "foo"}
	d := &plan.Desired{Key: key, Version: "v1", Manifest: parse(t, `{apiVersion: `+group+`/v1, kind: Foo, metadata: {name: foo, namespace: default}}`)}
	desired, recorded := observe.Request{Key: key, Version: "v1", Desired: d}, observe.Request{Key: key, Version: "v1"}

	if live := batch(t, observer, desired); live.Existence != plan.Unknown || !live.NotServed || live.Message == "" {
		t.Errorf("desired, never defined: got %+v", live)
	}
	if live := batch(t, observer, recorded); live.Existence != plan.Absent {
		t.Errorf("recorded, never defined: got %+v", live)
	}

	crd := create(t, target, definition(group, "Namespaced", "{type: object}"))
	create(t, target, `{apiVersion: `+group+`/v1, kind: Foo, metadata: {name: foo, namespace: default}}`)
	recorded.Version = "v1alpha1"
	for _, request := range []observe.Request{desired, recorded} {
		if live := batch(t, observer, request); live.Existence != plan.Present {
			t.Errorf("defined: got %+v", live)
		}
	}
	remove(t, target, crd)
	eventually(t, "the recorded object is absent", func() bool {
		return batch(t, observer, recorded).Existence == plan.Absent
	})
	eventually(t, "the desired object is unknown", func() bool {
		live := batch(t, observer, desired)
		return live.Existence == plan.Unknown && live.NotServed
	})
}

func TestATypeThatReturnsWithAnotherScopeIsFollowed(t *testing.T) {
	target := targetOn(t, env.Shared(t).Config())
	observer := observerOn(target)
	group := unique("g") + ".example.com"
	crd := create(t, target, definition(group, "Namespaced", "{type: object}"))
	foo := create(t, target, `{apiVersion: `+group+`/v1, kind: Foo, metadata: {name: foo, namespace: default}}`)
	recorded := observe.Request{Key: keyOf(foo), Version: "v1"}
	if live := batch(t, observer, recorded); live.Existence != plan.Present {
		t.Fatalf("got %+v", live)
	}
	remove(t, target, crd)
	definitionKey := keyOf(crd)
	eventually(t, "the definition is gone", func() bool {
		return batch(t, observer, observe.Request{Key: definitionKey}).Existence == plan.Absent
	})
	create(t, target, definition(group, "Cluster", "{type: object}"))
	create(t, target, `{apiVersion: `+group+`/v1, kind: Foo, metadata: {name: foo}}`)
	eventually(t, "the object in the namespace is absent", func() bool {
		return batch(t, observer, recorded).Existence == plan.Absent
	})
	if live := batch(t, observer, observe.Request{Key: plan.Key{Group: group, Kind: "Foo", Name: "foo"}}); live.Existence != plan.Present {
		t.Errorf("the object of the cluster: got %+v", live)
	}
	// What was learned before, that the type has namespaces, does not survive either.
	stale := observe.Request{Key: recorded.Key, Version: "v1", Desired: &plan.Desired{Key: recorded.Key, Version: "v1", Manifest: foo}}
	if live := batch(t, observer, stale); live.Existence != plan.Unknown || live.Message == "" {
		t.Errorf("desired in a namespace: got %+v", live)
	}
}

func TestOnlyTypesThatDeclareConditionsAreUnjudged(t *testing.T) {
	target := targetOn(t, env.Shared(t).Config())
	observer := observerOn(target)
	for schema, want := range map[string]plan.Readiness{
		"{type: object}": plan.Ready,
		"{type: object, properties: {status: {type: object, properties: {conditions: {type: array, items: {type: object}}}}}}": plan.ReadinessUnknown,
	} {
		group := unique("g") + ".example.com"
		create(t, target, definition(group, "Namespaced", schema))
		foo := create(t, target, `{apiVersion: `+group+`/v1, kind: Foo, metadata: {name: foo, namespace: default}}`)
		if live := batch(t, observer, observe.Request{Key: keyOf(foo), Version: "v1"}); live.Status.Readiness != want {
			t.Errorf("%s: got %+v", schema, live.Status)
		}
	}
}

func TestManyObjectsAreReadAtOnceAndOneThatCannotBeReadHoldsUpNothing(t *testing.T) {
	target := targetOn(t, env.Shared(t).Config())
	observer := observerOn(target)
	name := unique("map")
	var requests []observe.Request
	for i := range 200 {
		key := plan.Key{Kind: "ConfigMap", Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i)}
		switch i % 4 {
		case 0:
			create(t, target, `{apiVersion: v1, kind: ConfigMap, metadata: {name: `+key.Name+`, namespace: default}}`)
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
	observer := observerOn(targetOn(t, env.Shared(t).Config()))
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
