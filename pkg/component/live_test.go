// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
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
	b.restart(manifests.GeneratorFunc(configMaps))
	b.reconcile()
	b.wantNoWrites("writes at rest")

	b.update(func(w *widget.Widget) { w.Spec.Values["b"] = "changed" })
	b.resetRequests()
	w = b.until(v1alpha1.StateReady)
	want = []string{"update configmaps b", "patch secrets main-revisions", "patch widgets/status main"}
	if diff := cmp.Diff(want, b.writes()); diff != "" || w.Status.Revision != 2 {
		t.Errorf("revision %d; writes for one change (-want +got):\n%s", w.Status.Revision, diff)
	}

	b.annotate(map[string]string{operatorName + "/rollback-to": "1"})
	b.resetRequests()
	w = b.until(v1alpha1.StateReady)
	want = []string{"patch secrets main-revisions", "update configmaps b", "patch widgets/status main"}
	if diff := cmp.Diff(want, b.writes()); diff != "" || w.Status.Revision != 3 {
		t.Errorf("revision %d; writes for a rollback (-want +got):\n%s", w.Status.Revision, diff)
	}

	b.update(func(w *widget.Widget) {
		w.Annotations = nil
		delete(w.Spec.Values, "c")
	})
	w = b.until(v1alpha1.StateReady)
	if _, ok := b.configMap("c"); ok || len(w.Status.Inventory.Items) != 2 {
		t.Errorf("config map c was not pruned: %v", w.Status.Inventory.Items)
	}

	b.remove()
	b.wantNone("a", "b")
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

// pause runs reconciles with as much time between them, and returns what they wrote.
func (b *bed) pause(reconciles int, between time.Duration) []string {
	b.Helper()
	b.resetRequests()
	for range reconciles {
		b.forward += between
		_, _ = b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key("main")})
	}
	return b.writes()
}

func TestAtRestNothingIsWritten(t *testing.T) {
	renderings := 0
	failing := manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		renderings++
		return nil, fmt.Errorf("no chart (request 7d444840-9dc0-11d1-b245-%012d)", renderings)
	})
	invalid := configMap("a", nil)
	invalid.Data = map[string]string{"not/legal": "1"}
	tests := []struct {
		name      string
		generator manifests.Generator
		spec      widget.Spec
		options   component.ReconcilerOptions
		prepare   func(b *bed)
		state     v1alpha1.State
		reason    string
	}{
		{
			name: "suspended", generator: manifests.GeneratorFunc(configMaps), state: v1alpha1.StateSuspended, reason: vocabulary.ReasonSuspended,
			spec: widget.Spec{SuspensionSpec: component.SuspensionSpec{Suspend: true}},
		},
		{
			name: "its deletion is blocked", generator: manifests.GeneratorFunc(configMaps), state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked,
			spec: widget.Spec{Values: map[string]string{"a": "1"}},
			prepare: func(b *bed) {
				b.update(func(w *widget.Widget) { w.Finalizers = append(w.Finalizers, "example.com/foreign") })
				b.check(b.client.Delete(b.Context(), b.get()))
			},
		},
		{
			name: "an object belongs to another client", generator: manifests.GeneratorFunc(configMaps), state: v1alpha1.StateError, reason: vocabulary.ReasonOwnerConflict,
			spec:    widget.Spec{Values: map[string]string{"a": "1"}},
			options: component.ReconcilerOptions{AdoptionPolicy: new(v1alpha1.AdoptionPolicyNever)},
			prepare: func(b *bed) {
				b.check(b.client.Create(b.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "a"}}))
			},
		},
		{name: "the server refuses an object", generator: rendering(invalid), state: v1alpha1.StateError, reason: vocabulary.ReasonError},
		{
			name: "the generator fails with another identifier every time", state: v1alpha1.StateError, reason: vocabulary.ReasonError,
			generator: failing,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, test.generator, test.options)
			b.create(test.spec)
			if test.prepare != nil && test.state == v1alpha1.StateDeleting {
				b.until(v1alpha1.StateReady)
			}
			if test.prepare != nil {
				test.prepare(b)
			}
			b.pause(3, time.Minute)
			b.pause(1, 10*time.Minute) // the history has it once that the revision is not ready in time
			if writes := b.pause(12, time.Minute); len(writes) > 0 {
				t.Errorf("12 reconciles wrote %v", writes)
			}
			state, reason, message := b.get().Status.GetState()
			if state != test.state || reason != test.reason {
				t.Errorf("%s, %s: %s", state, reason, message)
			}
		})
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
	b.wantNoWrites("writes while it is suspended")
	b.update(func(w *widget.Widget) { w.Spec.Suspend = false })
	b.until(v1alpha1.StateReady)
	if writes := b.writes(); !slices.Contains(writes, "create configmaps second") {
		t.Errorf("writes after it: %v", writes)
	}
}
