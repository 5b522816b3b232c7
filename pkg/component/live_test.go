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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
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
