// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

func TestTheStatusSaysWhatIsAppliedAndHowToSelectIt(t *testing.T) {
	chart := must(helm.New(fstest.MapFS{
		"Chart.yaml":         {Data: []byte("apiVersion: v2\nname: settings\nversion: 1.2.3\nappVersion: '7'\n")},
		"values.yaml":        {Data: []byte("values: {value: none}\n")},
		"templates/own.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.value }}'}\n")},
	}, ".", helm.Options{}))(t)
	b := newBed(t, chart, component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"value": "1"}})
	b.until(component.StateReady)
	b.update(func(w *widget.Widget) { w.Spec.Values["value"] = "2" })
	w := b.untilGeneration()

	source := &v1alpha1.Source{Generator: "helm", Chart: "settings", Version: "1.2.3", AppVersion: "7"}
	if diff := cmp.Diff(source, w.Status.Source); diff != "" {
		t.Errorf("source (-want +got):\n%s", diff)
	}
	var applied []metav1.Time
	for i := range w.Status.History {
		entry := &w.Status.History[i]
		applied = append(applied, entry.AppliedAt)
		if entry.Digest == "" || entry.ReadyAt.IsZero() || entry.ChangedBy == "" || len(entry.Generator) != 16 {
			t.Errorf("%+v", *entry)
		}
		entry.AppliedAt, entry.ReadyAt, entry.Digest, entry.ChangedBy, entry.Generator = metav1.Time{}, nil, "", "", ""
	}
	ready := v1alpha1.RevisionReady
	want := []v1alpha1.RevisionStatus{{Revision: 2, Result: ready, Source: source}, {Revision: 1, Result: ready, Source: source}}
	if diff := cmp.Diff(want, w.Status.History); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	if len(applied) == 2 && (applied[1].IsZero() || applied[0].Before(&applied[1])) {
		t.Errorf("applied at %v", applied)
	}

	selected := &corev1.ConfigMapList{}
	b.check(b.client.List(t.Context(), selected, client.InNamespace(b.namespace), client.MatchingLabels{operatorName + "/owner-id": w.Status.OwnerID}))
	if len(selected.Items) != 1 || selected.Items[0].Name != "own" {
		t.Errorf("%d objects have the label of owner id %q", len(selected.Items), w.Status.OwnerID)
	}

	raw := &unstructured.Unstructured{}
	raw.SetAPIVersion("test.corbel.run/v1")
	raw.SetKind("Widget")
	b.check(b.client.Get(t.Context(), b.key("main"), raw))
	objects, _, err := unstructured.NestedStringMap(raw.Object, "status", "inventory", "objects")
	if _, ok := objects["v1 ConfigMap "+b.namespace+"/own"]; err != nil || !ok || len(objects) != 1 {
		t.Errorf("the inventory names %v, %v", objects, err)
	}
}
