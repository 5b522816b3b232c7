// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

const reconciler = "corbel.example.com"

func targetOn(t *testing.T, config *rest.Config) cluster.Target {
	t.Helper()
	target := check.Must(cluster.New(config, cluster.Options{RequestTimeout: 5 * time.Second}))(t)
	t.Cleanup(target.Close)
	return target
}

func observerOn(target cluster.Target) *observe.Observer {
	return observe.New(target, observe.Options{Name: reconciler, FieldOwner: "corbel", Parallelism: 8})
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	object := &unstructured.Unstructured{}
	check.NoError(t, object.UnmarshalJSON(content))
	return object
}

func keyOf(object *unstructured.Unstructured) plan.Key {
	gvk := object.GroupVersionKind()
	return plan.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// batch observes one object.
func batch(t *testing.T, observer *observe.Observer, request observe.Request) plan.Observation {
	t.Helper()
	observed := check.Must(observer.Observe(t.Context(), []observe.Request{request}))(t)
	observation, ok := observed[request.Key]
	if !ok {
		t.Fatalf("%s is missing in %v", request.Key, observed)
	}
	return observation
}

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

// Absence needs a proof; every other answer leaves an object unknown.
func TestOnlyAProofOfAbsenceMeansAbsent(t *testing.T) {
	named := &metav1.StatusDetails{Name: "map", Kind: "configmaps"}
	for name, tc := range map[string]struct {
		code    int
		reason  metav1.StatusReason
		details *metav1.StatusDetails
		want    plan.Existence
	}{
		"NotFound of the object":     {http.StatusNotFound, metav1.StatusReasonNotFound, named, plan.Absent},
		"NotFound of another object": {http.StatusNotFound, metav1.StatusReasonNotFound, &metav1.StatusDetails{Name: "other", Kind: "configmaps"}, plan.Unknown},
		"NotFound of nothing":        {http.StatusNotFound, metav1.StatusReasonNotFound, nil, plan.Unknown},
		"Forbidden":                  {http.StatusForbidden, metav1.StatusReasonForbidden, named, plan.Unknown},
		"Unauthorized":               {http.StatusUnauthorized, metav1.StatusReasonUnauthorized, named, plan.Unknown},
		"Gone":                       {http.StatusGone, metav1.StatusReasonGone, named, plan.Unknown},
		"an internal error":          {http.StatusInternalServerError, metav1.StatusReasonInternalError, named, plan.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			recorder.Answer = func(wire.Sent) (int, any) { return tc.code, wire.Failure(tc.code, tc.reason, tc.details) }
			observer := observerOn(targetOn(t, recorder.Config()))
			live := batch(t, observer, observe.Request{Key: plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "map"}, Version: "v1"})
			if live.Existence != tc.want || (live.Message == "") != (tc.want == plan.Absent) {
				t.Errorf("got %+v", live)
			}
		})
	}
}

// An object of a type that is not served may still be stored.
func TestAnObjectOfATypeThatIsNotServedIsAbsentOnlyIfNothingDefinesTheType(t *testing.T) {
	for name, tc := range map[string]struct {
		definition string
		want       plan.Existence
	}{
		"nothing brings it":    {"", plan.Absent},
		"a definition does":    {`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: bars.example.com}, spec: {names: {kind: Bar}}}`, plan.Unknown},
		"a server is to do so": {`{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: v2.example.com}}`, plan.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := wire.NewRecorder()
			if tc.definition != "" {
				recorder.Put(parse(t, tc.definition))
			}
			observer := observerOn(targetOn(t, recorder.Config()))
			live := batch(t, observer, observe.Request{Key: plan.Key{Group: "example.com", Kind: "Bar", Namespace: "shop", Name: "bar"}, Version: "v1"})
			if live.Existence != tc.want {
				t.Errorf("got %+v", live)
			}
		})
	}
}

// A typed client drops an empty map from a custom resource that it writes back, but for one that is a pointer to a struct.
func TestAnEmptyMapThatATypedClientDropsIsNoDrift(t *testing.T) {
	recorder := wire.NewRecorder()
	recorder.Put(parse(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: foos.example.com}, spec: {
		group: example.com, names: {kind: Foo, plural: foos}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {
		spec: {type: object, properties: {tls: {type: object}, items: {type: array, items: {type: object, properties: {name: {type: string}, config: {type: object, additionalProperties: {type: string}}}}}}}}}}}]}}`))
	observer := observerOn(targetOn(t, recorder.Config()))
	foo := func(spec string) *unstructured.Unstructured {
		return parse(t, `{apiVersion: example.com/v1, kind: Foo, metadata: {name: foo, namespace: shop}, spec: `+spec+`}`)
	}
	manifest := foo(`{tls: {}, items: [{name: a, config: {}}]}`)
	request := observe.Request{Key: keyOf(manifest), Version: "v1", Desired: &plan.Desired{Key: keyOf(manifest), Version: "v1", Digest: "d", Manifest: manifest}}
	recorder.Put(manifest)
	request.Recorded = &v1alpha1.InventoryItem{Digest: "d", AppliedHash: batch(t, observer, request).AppliedHash}
	for spec, drifted := range map[string]bool{`{tls: {}, items: [{name: a}]}`: false, `{items: [{name: a}]}`: true} {
		recorder.Put(foo(spec))
		if live := batch(t, observer, request); (live.Drift != nil) != drifted {
			t.Errorf("%s: got %+v", spec, live)
		}
	}
}
