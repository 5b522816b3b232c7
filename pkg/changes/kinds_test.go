// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
	"github.com/corbel-run/corbel/test/widget/installed"
)

func opinionated[T client.Object](
	do func(context.Context, changes.TypedReconcileRequest[T]) (changes.ReconcileResult, error),
) *changes.OpinionatedReconciler {
	return &changes.OpinionatedReconciler{Finalizer: finalizer, Reconciler: &changes.TypedReconciler[T]{ReconcileFunc: do}}
}

func TestAReconcilerThatWritesItsStatusIsNotCalledForIt(t *testing.T) {
	b, g, calls := newBed(t), newGate(), make(chan string, 10)
	installed.On(t, env.Shared(t), nil)
	var store client.Client
	r := opinionated(func(ctx context.Context, req changes.TypedReconcileRequest[*widget.Widget]) (changes.ReconcileResult, error) {
		calls <- string(req.Action)
		if req.Action == changes.ReconcileActionDeleted {
			return changes.ReconcileResult{}, nil
		}
		w := req.Object
		w.Status.ObservedGeneration = w.Generation
		conditions.Set(w, metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Notified", Message: "all was sent"})
		return changes.ReconcileResult{}, store.Status().Update(ctx, w)
	})
	mgr := b.newManager(g.Wrap)
	store = mgr.GetClient()
	check.NoError(b, changes.NewController(b.namespace, &widget.Widget{}, r, changes.Options{}).SetupWithManager(mgr))
	b.run(mgr)

	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "w"}, Spec: widget.Spec{Size: 1}}
	check.NoError(b, b.client.Create(t.Context(), w))
	converged := func(size int64) {
		t.Helper()
		b.until("the widget has converged", func() (bool, string) {
			check.NoError(b, b.client.Get(t.Context(), client.ObjectKeyFromObject(w), w))
			return w.Status.ObservedGeneration == w.Generation && w.Spec.Size == size && slices.Equal(w.Finalizers, []string{finalizer}), ""
		})
		conditionstest.Check(t, w)
	}
	expect := func(wantCalls, wantWrites []string) {
		t.Helper()
		var got []string
		for len(calls) > 0 {
			got = append(got, <-calls)
		}
		check.EqualNamed(t, "calls", wantCalls, got)
		check.EqualNamed(t, "writes", wantWrites, written(g))
	}
	converged(1)
	expect([]string{"Created"}, []string{"PATCH w", "PUT status", "PATCH w"})
	w.Spec.Size = 2
	check.NoError(b, b.client.Update(t.Context(), w))
	converged(2)
	check.NoError(b, b.client.Delete(t.Context(), w))
	b.until("the widget is gone", func() (bool, string) {
		return apierrors.IsNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(w), w)), ""
	})
	expect([]string{"Updated", "Deleted"}, []string{"PUT status", "PATCH w"})
}

func TestOptionsOfTheCacheAndOfTheControllerArePassedOn(t *testing.T) {
	b := newBed(t)
	var running, resyncs atomic.Int32
	together := make(chan struct{})
	r := opinionated(func(ctx context.Context, req changes.TypedReconcileRequest[*corev1.ConfigMap]) (changes.ReconcileResult, error) {
		if len(req.Object.Data) > 0 {
			t.Errorf("%s: what the cache strips is there: %v", req.Action, req.Object.Data)
		}
		if req.Action != changes.ReconcileActionCreated {
			if req.Action == changes.ReconcileActionResynced {
				resyncs.Add(1)
			}
			return changes.ReconcileResult{}, nil
		}
		if running.Add(1) == 2 {
			close(together)
		}
		defer running.Add(-1)
		select {
		case <-together: // each waits for the other
		case <-ctx.Done():
		}
		return changes.ReconcileResult{}, ctx.Err()
	})
	b.start(nil, &corev1.ConfigMap{}, r, changes.Options{
		CacheOptions: &cache.Options{
			SyncPeriod:        new(200 * time.Millisecond),
			DefaultNamespaces: map[string]cache.Config{b.namespace: {}},
			DefaultTransform: func(obj any) (any, error) {
				if obj, ok := obj.(*corev1.ConfigMap); ok {
					obj.Data = nil
				}
				return obj, nil
			},
		},
		Controller: controller.Options{MaxConcurrentReconciles: 2},
	})
	for _, name := range []string{"x", "y"} {
		b.create(name, "1")
	}
	b.until("an object is resynced by the cache", func() (bool, string) { return resyncs.Load() > 0, "" })
	for _, name := range []string{"x", "y"} {
		b.untilFinalizers(name, finalizer)
		b.delete(name)
		b.untilGone(name)
	}
}
