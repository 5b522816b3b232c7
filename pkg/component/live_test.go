// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestLifeOfAComponent(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "2", "c": "3"}})

	b.resetRequests()
	w := b.until(v1alpha1.StateReady)
	if value, ok := b.configMap("b"); !ok || value != "2" {
		t.Errorf("config map b: %q, %v", value, ok)
	}
	want := []string{
		"patch widgets main",        // finalizer
		"patch widgets/status main", // first seen, and inventory
		"create configmaps ", "create configmaps ", "create configmaps ", "create secrets main-revisions",
		"patch widgets/status main", // ready
	}
	var got []string
	for _, write := range b.writes() {
		if strings.HasPrefix(write, "create configmaps") {
			write = "create configmaps "
		}
		if !strings.Contains(write, "digest-key") { // of the first component
			got = append(got, write)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes of the installation (-want +got):\n%s", diff)
	}
	if !slices.Contains(w.Finalizers, operatorName) || w.Status.Progress != "3/3" || w.Status.Revision != 1 ||
		w.Status.AppliedGeneration != w.Generation || w.Status.ObservedGeneration != w.Generation || len(w.Status.Inventory.Items) != 3 {
		t.Errorf("finalizers %v, status %+v", w.Finalizers, w.Status)
	}

	b.resetRequests()
	if _, result, err := b.reconcile(); err != nil || result.RequeueAfter < 9*time.Minute || result.RequeueAfter > 10*time.Minute {
		t.Errorf("at rest: %+v, %v", result, err)
	}
	again := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.check(again.SetupWithManager(newManager(t, b.env, b.user)))
	b.reconciler = again // as after a restart
	b.reconcile()
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("writes at rest: %v", writes)
	}

	b.update(func(w *widget.Widget) { w.Spec.Values["b"] = "changed" })
	b.resetRequests()
	w = b.until(v1alpha1.StateReady)
	want = []string{"update configmaps b", "patch secrets main-revisions", "patch widgets/status main"}
	if diff := cmp.Diff(want, b.writes()); diff != "" || w.Status.Revision != 2 {
		t.Errorf("revision %d; writes for one change (-want +got):\n%s", w.Status.Revision, diff)
	}

	b.update(func(w *widget.Widget) { delete(w.Spec.Values, "c") })
	w = b.until(v1alpha1.StateReady)
	if _, ok := b.configMap("c"); ok || len(w.Status.Inventory.Items) != 2 {
		t.Errorf("config map c was not pruned: %v", w.Status.Inventory.Items)
	}

	b.check(b.client.Delete(t.Context(), w))
	b.untilGone()
	for _, name := range []string{"a", "b"} {
		if _, ok := b.configMap(name); ok {
			t.Errorf("config map %s was still there", name)
		}
	}
}

// expect runs a reconcile and looks at its verdict.
func (b *bed) expect(state v1alpha1.State, reason string) *widget.Widget {
	b.Helper()
	w, _, _ := b.reconcile()
	if gotState, gotReason, message := w.Status.GetState(); gotState != state || gotReason != reason {
		b.Errorf("%s, %s: %s, want %s, %s", gotState, gotReason, message, state, reason)
	}
	return w
}

func TestTheStatusSaysWhatIsAppliedAndHowToSelectIt(t *testing.T) {
	chart := must(helm.New(fstest.MapFS{
		"Chart.yaml":         {Data: []byte("apiVersion: v2\nname: settings\nversion: 1.2.3\nappVersion: '7'\n")},
		"values.yaml":        {Data: []byte("values: {value: none}\n")},
		"templates/own.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {value: '{{ .Values.values.value }}'}\n")},
	}, ".", helm.Options{}))(t)
	b := newBed(t, chart, component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"value": "1"}})
	b.until(v1alpha1.StateReady)
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

func TestARequestForAReconcileIsFollowedWithoutANewRevision(t *testing.T) {
	var rendered atomic.Int32
	b := newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		rendered.Add(1)
		return configMaps(ctx, namespace, name, parameters)
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	before := b.until(v1alpha1.StateReady)
	for _, request := range []map[string]string{
		{"test.corbel.run/reconcile-at": "2026-01-01T00:00:00Z"},
		{"reconcile.fluxcd.io/requestedAt": "2026-01-01T23:00:00.123-05:00"},
		{"test.corbel.run/reconcile-at": "2026-01-03T00:00:00Z"},
	} {
		renderedBefore := rendered.Load()
		b.annotate(request)
		w := b.until(v1alpha1.StateReady)
		for _, value := range request {
			if w.Status.LastHandledReconcileAt != value {
				t.Errorf("%v: handled is %q", request, w.Status.LastHandledReconcileAt)
			}
		}
		if rendered.Load() == renderedBefore {
			t.Errorf("%v: nothing was rendered", request)
		}
		if w.Status.Revision != before.Status.Revision || w.Status.ProcessingDigest != before.Status.ProcessingDigest || !w.Status.LastAppliedAt.Equal(before.Status.LastAppliedAt) {
			t.Errorf("%v: the status is %+v, was %+v", request, w.Status.Status, before.Status.Status)
		}
	}
}
