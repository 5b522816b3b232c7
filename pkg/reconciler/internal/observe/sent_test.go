// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe_test

import (
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/wire"
)

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
