// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// annotate sets annotations of the component; an empty value removes one.
func (b *bed) annotate(annotations map[string]string) {
	b.Helper()
	b.update(func(w *widget.Widget) {
		if w.Annotations == nil {
			w.Annotations = map[string]string{}
		}
		for key, value := range annotations {
			if w.Annotations[key] = value; value == "" {
				delete(w.Annotations, key)
			}
		}
	})
}

func TestASuspensionSaysUntilWhenAndWhy(t *testing.T) {
	const suspend, reason = "test.corbel.run/suspend", "test.corbel.run/suspend-reason"
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	far, near := metav1.NewTime(time.Now().Add(time.Hour).Truncate(time.Second)), time.Now().Add(-time.Hour)
	text := far.UTC().Format(time.RFC3339)
	for _, test := range []struct {
		name        string
		annotations map[string]string
		spec        component.SuspensionSpec
		want        string // empty: it is not suspended
		ends        bool   // and so it is requeued
	}{
		{name: "not suspended"},
		{name: "by the annotation", annotations: map[string]string{suspend: "true"}, want: "suspended"},
		{name: "by the annotation, with a reason", annotations: map[string]string{suspend: "true", reason: "incident 7"}, want: "suspended: incident 7"},
		{name: "by the annotation, with a long reason", annotations: map[string]string{suspend: "true", reason: strings.Repeat("x", 200_000)},
			want: "suspended: " + strings.Repeat("x", 317) + "…"},
		{name: "by the annotation, with an end", annotations: map[string]string{suspend: text}, want: "suspended until " + text, ends: true},
		{name: "an annotation that has ended", annotations: map[string]string{suspend: near.Format(time.RFC3339)}},
		{name: "an annotation that is false", annotations: map[string]string{suspend: "false"}},
		{name: "by the spec", spec: component.SuspensionSpec{Suspend: true, SuspendReason: "incident 8"}, want: "suspended: incident 8"},
		{name: "by the spec, with an end", spec: component.SuspensionSpec{Suspend: true, SuspendUntil: &far}, want: "suspended until " + text, ends: true},
		{name: "a spec that has ended", spec: component.SuspensionSpec{Suspend: true, SuspendUntil: &metav1.Time{Time: near}}},
		{name: "both, and the annotation has ended", annotations: map[string]string{suspend: near.Format(time.RFC3339), reason: "old"},
			spec: component.SuspensionSpec{Suspend: true, SuspendReason: "incident 9"}, want: "suspended: incident 9"},
		{name: "both, and the annotation will end", annotations: map[string]string{suspend: text}, spec: component.SuspensionSpec{Suspend: true}, want: "suspended"},
		{name: "both, and the spec will end", annotations: map[string]string{suspend: "true"},
			spec: component.SuspensionSpec{Suspend: true, SuspendUntil: &far}, want: "suspended"},
		{name: "a mistake in the annotation, and the spec", annotations: map[string]string{suspend: "x"},
			spec: component.SuspensionSpec{Suspend: true}, want: "suspended"},
		{name: "an annotation with the zero time", annotations: map[string]string{suspend: "0001-01-01T00:00:00Z"}},
		{name: "terms of no suspension", spec: component.SuspensionSpec{SuspendUntil: &far, SuspendReason: "x"}},
	} {
		b.annotate(map[string]string{suspend: test.annotations[suspend], reason: test.annotations[reason]})
		b.update(func(w *widget.Widget) {
			w.Spec.SuspensionSpec = test.spec
			w.Spec.Values["a"] = test.name
		})
		if test.want == "" {
			b.untilGeneration()
			if value, _ := b.configMap("a"); value != test.name {
				t.Errorf("%s: the dependent is %q", test.name, value)
			}
			continue
		}
		w, result, err := b.reconcile()
		b.check(err)
		state, _, message := w.Status.GetState()
		if state != v1alpha1.StateSuspended || message != test.want || w.Status.ObservedGeneration != w.Generation {
			t.Errorf("%s: %s: %s, observed generation %d of %d", test.name, state, message, w.Status.ObservedGeneration, w.Generation)
		}
		if ends := result.RequeueAfter > 0; ends != test.ends || result.RequeueAfter > time.Hour {
			t.Errorf("%s: requeued after %s", test.name, result.RequeueAfter)
		}
		if value, _ := b.configMap("a"); value == test.name {
			t.Errorf("%s: the dependent was changed", test.name)
		}
	}

	b.annotate(map[string]string{suspend: "tomorrow"})
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "after a mistake" })
	w := b.expect(v1alpha1.StateError, vocabulary.ReasonSpecInvalid)
	if _, _, message := w.Status.GetState(); !strings.Contains(message, `annotation `+suspend+`: "tomorrow" must be "true", "false" or a time`) {
		t.Errorf("the message is %q", message)
	}
	if value, _ := b.configMap("a"); value == "after a mistake" {
		t.Error("the dependent was changed in spite of a mistake in the suspension")
	}
	b.annotate(map[string]string{suspend: "true"})
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone() // a suspension does not block it
}

func TestASuspensionEndsByItselfAtItsTime(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	until := metav1.NewTime(time.Now().Add(30 * time.Minute))
	b.create(widget.Spec{
		Values:         map[string]string{"a": "1"},
		SuspensionSpec: component.SuspensionSpec{Suspend: true, SuspendUntil: &until},
	})
	w, result, err := b.reconcile()
	if w.Status.State != v1alpha1.StateSuspended || err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 30*time.Minute {
		t.Fatalf("state %s, %+v, %v", w.Status.State, result, err)
	}
	if _, exists := b.configMap("a"); exists {
		t.Error("an object was created meanwhile")
	}
	b.forward = 30*time.Minute + time.Second
	b.until(v1alpha1.StateReady)
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

func TestAComponentThatIsSuspendedBetweenTwoWavesStopsThereAndGoesOnLater(t *testing.T) {
	first := configMap("first", func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{operatorName + "/ready-when": "'open' in self.data", operatorName + "/ignore-fields": "/data/open"}
		c.Data = map[string]string{"value": "1"}
	})
	second := annotated("second", "apply-order", "1")
	b := newBed(t, rendering(first, second), component.ReconcilerOptions{})
	b.create(widget.Spec{})
	b.until(v1alpha1.StateProcessing)
	b.update(func(w *widget.Widget) { w.Spec.Suspend = true })
	b.expect(v1alpha1.StateSuspended, vocabulary.ReasonSuspended)
	opened := &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("first"), opened))
	opened.Data["open"] = "yes"
	b.check(b.client.Update(t.Context(), opened))
	b.resetRequests()
	for range 3 {
		b.reconcile()
	}
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("writes while it is suspended: %v", writes)
	}
	b.update(func(w *widget.Widget) { w.Spec.Suspend = false })
	b.until(v1alpha1.StateReady)
	if writes := b.writes(); !slices.Contains(writes, "create configmaps second") {
		t.Errorf("writes after it: %v", writes)
	}
}
