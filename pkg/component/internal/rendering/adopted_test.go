// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/component/internal/identity"
)

func TestWhichValueIsCarriedOver(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		if text == "" {
			return nil
		}
		return objectsIn(t, text)[0].(*unstructured.Unstructured)
	}
	const secret, config = "{apiVersion: v1, kind: Secret, metadata: {name: a}, ", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, "
	tests := []struct {
		name         string
		live, before string
		path         []any
		fresh, want  any
	}{
		{"the live one", config + "data: {a: live}}", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "live"},
		{"a text of a Secret", secret + "data: {a: bGl2ZQ==}}", secret + "stringData: {a: rendered}}", []any{"stringData", "a"}, "fresh", "live"},
		{"of a Secret that lacks it", secret + "data: {b: bGl2ZQ==}}", secret + "stringData: {a: rendered}}", []any{"stringData", "a"}, "fresh", "rendered"},
		{"of what has been deleted", "", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "rendered"},
		{"of a field that is gone", config + "data: {b: live}}", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "rendered"},
		{"of what only the cluster has", config + "data: {a: live}}", "", []any{"data", "a"}, "fresh", "live"},
		{"of what is new", "", "", []any{"data", "a"}, "fresh", nil},
		{"of a map, without the defaults of the server", config + "data: {a: live, b: default}}", config + "data: {a: rendered}}", []any{"data"}, map[string]any{"a": "fresh"}, map[string]any{"a": "rendered"}},
		{"of a list of the same length", config + "list: [{a: live}]}", config + "list: [{a: rendered}]}", []any{"list", int64(0), "a"}, "fresh", "live"},
		{"of a list that others have changed", config + "list: [{a: theirs}, {a: live}]}", config + "list: [{a: rendered}]}", []any{"list", int64(0), "a"}, "fresh", "rendered"},
		{"of a field that has another type now", config + "data: {a: {b: c}}}", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "rendered"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, exists := carriedValue(object(test.live), object(test.before), randomValue{Path: test.path, Value: test.fresh})
			if diff := cmp.Diff(test.want, got); diff != "" || exists != (test.want != nil) {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAHookThatRanKeepsNothingThatCouldChangeIt(t *testing.T) {
	hook := objectsIn(t, `
apiVersion: batch/v1
kind: Job
metadata:
  name: migration
  namespace: market
  labels: {app: shop}
  annotations:
    helm.sh/hook: pre-upgrade
    test.corbel.run/apply-order: "-20000"
    test.corbel.run/depends-on: batch/Job/other
    test.corbel.run/purge-order: "-10000"
    test.corbel.run/revision: "7"
    test.corbel.run/update-policy: recreate
spec: {template: {spec: {containers: [{name: main}]}}}
`)[0].(*unstructured.Unstructured)
	want := objectsIn(t, `
apiVersion: batch/v1
kind: Job
metadata:
  name: migration
  namespace: market
  annotations:
    test.corbel.run/apply-order: "-20000"
    test.corbel.run/adoption-policy: if-unowned
    test.corbel.run/ready-when: "true"
    test.corbel.run/reconcile-policy: once-per-manifest
    test.corbel.run/revision: "7"
    test.corbel.run/update-policy: ssa-merge
`)[0]
	if diff := cmp.Diff(want.(*unstructured.Unstructured).Object, (&Renderer{Self: &identity.Operator{Name: "test.corbel.run"}}).hookThatRan(hook).Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
