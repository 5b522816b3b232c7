// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestLifeOfAComponent(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "2", "c": "3"}})

	w := b.until(component.StateReady)
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
	w = b.until(component.StateReady)
	want := []string{"update configmaps b", "patch secrets main-revisions", "patch widgets/status main"}
	if diff := cmp.Diff(want, b.writes()); diff != "" || w.Status.Revision != 2 {
		t.Errorf("revision %d; writes for one change (-want +got):\n%s", w.Status.Revision, diff)
	}

	b.update(func(w *widget.Widget) { delete(w.Spec.Values, "c") })
	w = b.until(component.StateReady)
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

func TestEventsOfAnInstall(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "2"}})
	b.until(component.StateReady)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		list := &eventsv1.EventList{}
		b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
		var texts []string
		for _, event := range list.Items {
			texts = append(texts, event.Reason+": "+event.Note)
			if event.Regarding.Name != "main" || event.ReportingController != operatorName {
				t.Errorf("event %s is about %s and from %s", event.Reason, event.Regarding.Name, event.ReportingController)
			}
		}
		if slices.Contains(texts, "Applied: created 2 objects") && slices.Contains(texts, "Ready: 2 of 2 dependent objects are ready") {
			if len(texts) > 5 {
				t.Errorf("too many events: %q", texts)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("events: %q", texts)
		}
	}
}

func TestAnInstallOfThousandObjectsMakesAtMostFiveEvents(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	values := map[string]string{}
	for i := range 1000 {
		values[fmt.Sprintf("config-%d", i)] = "1"
	}
	b.create(widget.Spec{Values: values})
	b.until(component.StateReady)
	const last = "Ready: 1000 of 1000 dependent objects are ready"
	var texts []string
	for deadline := time.Now().Add(patience); !slices.Contains(texts, last); time.Sleep(50 * time.Millisecond) {
		list := &eventsv1.EventList{}
		b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
		texts = nil
		for _, event := range list.Items {
			texts = append(texts, event.Reason+": "+event.Note)
		}
		if time.Now().After(deadline) {
			t.Fatalf("events: %q", texts)
		}
	}
	if len(texts) > 5 || !slices.Contains(texts, "Applied: created 1000 objects") {
		t.Errorf("%d events: %q", len(texts), texts)
	}
}

func TestSuspension(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{SuspensionSpec: component.SuspensionSpec{Suspend: true}, Values: map[string]string{"a": "1"}})
	w, result, err := b.reconcile()
	if state, reason, _ := w.Status.GetState(); err != nil || result.RequeueAfter != 0 || state != component.StateSuspended || reason != v1alpha1.ReasonSuspended {
		t.Errorf("%s, %s; %+v, %v", state, reason, result, err)
	}
	if _, ok := b.configMap("a"); ok {
		t.Error("something was created")
	}
	b.update(func(w *widget.Widget) { w.Spec.Suspend = false })
	b.until(component.StateReady)

	b.update(func(w *widget.Widget) { w.Spec.Suspend = true; w.Spec.Values["a"] = "2" })
	b.reconcile()
	if value, _ := b.configMap("a"); value != "1" {
		t.Errorf("config map a became %q", value)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	if _, ok := b.configMap("a"); ok {
		t.Error("suspension affects the deletion")
	}
}

func TestRetriableErrors(t *testing.T) {
	ready := false
	b := newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		if !ready {
			return nil, types.NewRetriableError(errors.New("the database is not there yet"), new(7*time.Second))
		}
		return configMaps(ctx, namespace, name, p)
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{})
	w, result, err := b.reconcile()
	state, reason, message := w.Status.GetState()
	if err != nil || result.RequeueAfter != 7*time.Second || state != component.StatePending || reason != v1alpha1.ReasonRetrying ||
		!strings.Contains(message, "the database is not there yet") {
		t.Errorf("%s, %s: %s; %+v, %v", state, reason, message, result, err)
	}
	ready = true
	b.until(component.StateReady)
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
	if w := b.until(component.StateReady); w.Status.Note != "post-reconcile" {
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
