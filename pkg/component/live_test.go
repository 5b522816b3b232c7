// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestLifeOfAComponent(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "2", "c": "3"}})

	w := b.until(v1alpha1.StateReady)
	if value, ok := b.configMap("b"); !ok || value != "2" {
		t.Errorf("config map b: %q, %v", value, ok)
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
	want := []string{"update configmaps b", "patch secrets main-revisions", "patch widgets/status main"}
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

func TestHooksOfALife(t *testing.T) {
	var calls []string
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, func(b *bed) {
		hook := func(name string) component.HookFunc[*widget.Widget] {
			return func(ctx context.Context, c client.Client, w *widget.Widget) error {
				if c != b.manager.GetClient() {
					b.Errorf("%s: the client is not the manager's", name)
				}
				if _, err := component.ClientFromContext(ctx); (err == nil) == (name == "post-read") {
					b.Errorf("%s: ClientFromContext: %v", name, err)
				}
				calls = append(calls, name)
				w.Status.Note = name
				return nil
			}
		}
		b.reconciler.WithPostReadHook(hook("post-read")).
			WithPreReconcileHook(hook("pre-reconcile")).WithPostReconcileHook(hook("post-reconcile")).
			WithPreDeleteHook(hook("pre-delete")).WithPostDeleteHook(hook("post-delete"))
	})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	if w := b.until(v1alpha1.StateReady); w.Status.Note != "post-reconcile" {
		t.Errorf("the status that hooks wrote was saved as %q", w.Status.Note)
	}
	if got := strings.Join(calls, " "); !strings.HasPrefix(got, "post-read pre-reconcile") || strings.Count(got, "post-reconcile") != 1 {
		t.Errorf("calls: %s", got)
	}
	calls = nil
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	if got := strings.Join(calls, " "); !strings.HasPrefix(got, "post-read pre-delete") || !strings.HasSuffix(got, " post-delete") || strings.Count(got, "post-delete") != 1 {
		t.Errorf("calls in deletion: %s", got)
	}
}

func TestTheFinalizerComesBeforeAnythingElse(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.resetRequests()
	b.until(v1alpha1.StateReady)
	want := []string{
		"patch widgets main",        // finalizer
		"patch widgets/status main", // first seen, and inventory
		"create configmaps ",
		"create secrets main-revisions",
		"patch widgets/status main", // ready
	}
	got := b.writes()
	for i := range got {
		if strings.HasPrefix(got[i], "create configmaps") {
			got[i] = "create configmaps "
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestDetachOnDelete(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.update(func(w *widget.Widget) {
		w.Annotations = map[string]string{operatorName + "/management-policy": "detach-on-delete"}
	})
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	left := &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("a"), left))
	if len(left.Labels)+len(left.Annotations) > 0 || left.Data["value"] != "1" {
		t.Errorf("config map a still has our label and annotation, or changed: %v %v %v", left.Labels, left.Annotations, left.Data)
	}
}

func TestSecondSetupIsAnError(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	if err := b.reconciler.SetupWithManager(b.manager); err == nil || !strings.Contains(err.Error(), "set up before") {
		t.Errorf("error %v", err)
	}
	if _, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}); err != nil {
		t.Errorf("the first setup does not work any more: %v", err)
	}
}

// interval is how specs hold durations.
func interval(d time.Duration) *types.Duration { return &types.Duration{Duration: d} }

func TestAReadyComponentIsRequeuedAfterItsIntervalWhichIsTenMinutesByDefault(t *testing.T) {
	for name, test := range map[string]struct {
		spec component.RequeueSpec
		want time.Duration
	}{
		"by default":                     {component.RequeueSpec{}, 10 * time.Minute},
		"as the component says":          {component.RequeueSpec{RequeueInterval: interval(3 * time.Minute)}, 3 * time.Minute},
		"less than a second is a second": {component.RequeueSpec{RequeueInterval: interval(time.Millisecond)}, time.Second},
		"zero is no interval of its own": {component.RequeueSpec{RequeueInterval: interval(0)}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{RequeueSpec: test.spec, Values: map[string]string{"a": "1"}})
			b.until(v1alpha1.StateReady)
			_, result, err := b.reconcile()
			// The jitter is at most a tenth and makes it come early.
			if err != nil || result.RequeueAfter > test.want || result.RequeueAfter < test.want*9/10 {
				t.Errorf("comes again after %s, %v, want %s", result.RequeueAfter, err, test.want)
			}
		})
	}
}

func TestARetriableErrorRequeuesAfterItsDelayOrTheRetryIntervalOrTheRequeueInterval(t *testing.T) {
	retry := component.RetrySpec{RetryInterval: interval(2 * time.Minute)}
	requeue := component.RequeueSpec{RequeueInterval: interval(3 * time.Minute)}
	for name, test := range map[string]struct {
		delay *time.Duration
		spec  widget.Spec
		want  time.Duration
	}{
		"the delay of the error":         {new(70 * time.Second), widget.Spec{RetrySpec: retry, RequeueSpec: requeue}, 70 * time.Second},
		"else the retry interval":        {nil, widget.Spec{RetrySpec: retry, RequeueSpec: requeue}, 2 * time.Minute},
		"else the requeue interval":      {nil, widget.Spec{RequeueSpec: requeue}, 3 * time.Minute},
		"which is 10 minutes unless set": {nil, widget.Spec{}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, failing(types.NewRetriableError(errors.New("not yet"), test.delay)), component.ReconcilerOptions{})
			b.create(test.spec)
			w, result, err := b.reconcile()
			state, reason, _ := w.Status.GetState()
			if err != nil || state != v1alpha1.StatePending || reason != vocabulary.ReasonRetrying || result.RequeueAfter != test.want {
				t.Errorf("%s, %s; comes again after %s, %v, want %s", state, reason, result.RequeueAfter, err, test.want)
			}
		})
	}
}

func failing(err error) manifests.Generator {
	return manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) { return nil, err })
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
