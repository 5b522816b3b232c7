// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestTheFinalizerComesBeforeAnythingElse(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.resetRequests()
	b.until(component.StateReady)
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

func TestDeletedWhileItIsRendered(t *testing.T) {
	var b *bed
	deleted := false
	b = newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		if !deleted {
			deleted = true
			b.check(b.client.Delete(ctx, &widget.Widget{ObjectMeta: b.get().ObjectMeta}))
		}
		return configMaps(ctx, namespace, name, p)
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	if _, result, err := b.reconcile(); err != nil || result.RequeueAfter == 0 {
		t.Errorf("the reconcile does not end quietly: %+v, %v", result, err)
	}
	if _, exists := b.configMap("a"); exists {
		t.Error("something was created for a component that is being deleted")
	}
	b.untilGone()
}

func TestChangedWhileItIsRendered(t *testing.T) {
	var b *bed
	changed := false
	b = newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		if !changed {
			changed = true
			b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"new": "2"} })
		}
		return configMaps(ctx, namespace, name, p)
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"old": "1"}})
	if _, result, err := b.reconcile(); err != nil || result.RequeueAfter == 0 {
		t.Errorf("the reconcile does not end quietly: %+v, %v", result, err)
	}
	b.until(component.StateReady)
	if _, exists := b.configMap("old"); exists {
		t.Error("the old spec was applied after it had changed")
	}
	if _, exists := b.configMap("new"); !exists {
		t.Error("the new spec was not applied")
	}
}

func TestForeignFinalizersBlockTheDeletion(t *testing.T) {
	const foreign = "backup.example.com/snapshot"
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	b.update(func(w *widget.Widget) { w.Finalizers = append(w.Finalizers, foreign) })
	b.check(b.client.Delete(t.Context(), b.get()))

	w := b.until(component.StateDeleting)
	if _, reason, message := w.Status.GetState(); reason != v1alpha1.ReasonDeletionBlocked || !strings.Contains(message, foreign) {
		t.Errorf("%s: %s", reason, message)
	}
	if _, exists := b.configMap("a"); !exists {
		t.Error("the deletion started although it is blocked")
	}
	b.update(func(w *widget.Widget) {
		w.Finalizers = slices.DeleteFunc(w.Finalizers, func(f string) bool { return f == foreign })
	})
	b.untilGone()
	if _, exists := b.configMap("a"); exists {
		t.Error("config map a was still there")
	}
}

func TestDetachOnDelete(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
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

// With a running manager: the watch starts reconciles, and so does Trigger.
func TestRunningOperator(t *testing.T) {
	reconciles := make(chan string, 100)
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, func(b *bed) {
		b.reconciler.WithPostReconcileHook(func(_ context.Context, _ client.Client, w *widget.Widget) error {
			reconciles <- w.Name
			return nil
		})
	})
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- b.manager.Start(ctx) }()
	defer func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	}()
	await := func(what string, condition func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: did not happen", what)
			}
		}
	}
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	await("the install", func() bool { return b.get().Status.IsReady() })
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
	await("the change", func() bool {
		value, _ := b.configMap("a")
		return value == "2" && b.get().Status.AppliedGeneration == 2
	})

	// No reconcile comes by itself now: the status that was written is no reason.
	for quiet := false; !quiet; {
		select {
		case <-reconciles:
		case <-time.After(300 * time.Millisecond):
			quiet = true
		}
	}
	b.check(b.reconciler.Trigger(b.namespace, "main"))
	select {
	case <-reconciles:
	case <-time.After(patience):
		t.Error("Trigger started no reconcile")
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	await("the deletion", func() bool { return b.client.Get(t.Context(), b.key("main"), &widget.Widget{}) != nil })
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
