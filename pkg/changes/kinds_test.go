// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
	"github.com/corbel-run/corbel/test/widget/installed"
)

// diary notes calls of any kind.
type diary struct {
	mu      sync.Mutex
	entries []string
}

func (d *diary) note(action changes.ReconcileAction, obj client.Object) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.entries = append(d.entries, string(action)+" "+obj.GetName())
}

func (d *diary) read() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.entries)
}

// noting is an opinionated reconciler that notes calls and then does something.
func noting[T client.Object](d *diary, do func(context.Context, changes.TypedReconcileRequest[T]) (changes.ReconcileResult, error)) *changes.OpinionatedReconciler {
	return &changes.OpinionatedReconciler{Finalizer: finalizer, Reconciler: &changes.TypedReconciler[T]{
		ReconcileFunc: func(ctx context.Context, req changes.TypedReconcileRequest[T]) (changes.ReconcileResult, error) {
			d.note(req.Action, req.Object)
			if do == nil {
				return changes.ReconcileResult{}, nil
			}
			return do(ctx, req)
		},
	}}
}

func (b *bed) untilNoted(d *diary, want ...string) {
	b.Helper()
	b.until("all was noted", func() (bool, string) {
		return len(d.read()) >= len(want), cmp.Diff(want, d.read())
	})
	if diff := cmp.Diff(want, d.read()); diff != "" {
		b.Fatalf("calls (-want +got):\n%s", diff)
	}
}

func TestAReconcilerThatWritesItsStatusIsNotCalledForIt(t *testing.T) {
	b, d, g := newBed(t), &diary{}, newGate()
	installed.On(t, env.Shared(t), nil)
	var store client.Client
	r := noting(d, func(ctx context.Context, req changes.TypedReconcileRequest[*widget.Widget]) (changes.ReconcileResult, error) {
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
	b.check(changes.NewController(b.namespace, &widget.Widget{}, r, changes.Options{}).SetupWithManager(mgr))
	b.run(mgr)

	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "w"}, Spec: widget.Spec{Size: 1}}
	b.check(b.client.Create(t.Context(), w))
	converged := func(size int64) {
		t.Helper()
		b.until("the widget has converged", func() (bool, string) {
			b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(w), w))
			return w.Status.ObservedGeneration == w.Generation && w.Spec.Size == size && slices.Equal(w.Finalizers, []string{finalizer}), ""
		})
		conditionstest.Check(t, w)
	}
	converged(1)
	b.untilNoted(d, "Created w")
	if diff := cmp.Diff([]string{"PATCH w", "PUT status", "PATCH w"}, written(g)); diff != "" {
		t.Errorf("writes of a creation (-want +got):\n%s", diff)
	}
	w.Spec.Size = 2
	b.check(b.client.Update(t.Context(), w))
	converged(2)
	b.check(b.client.Delete(t.Context(), w))
	b.until("the widget is gone", func() (bool, string) {
		return client.IgnoreNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(w), w)) == nil && len(d.read()) == 3, ""
	})
	b.untilNoted(d, "Created w", "Updated w", "Deleted w")
	if diff := cmp.Diff([]string{"PUT status", "PATCH w"}, written(g)); diff != "" {
		t.Errorf("writes of an update and a deletion (-want +got):\n%s", diff)
	}
}

func TestOptionsOfTheCacheAndOfTheControllerArePassedOn(t *testing.T) {
	b, d := newBed(t), &diary{}
	var running, most atomic.Int32
	together := make(chan struct{})
	period := 200 * time.Millisecond
	var whole atomic.Bool
	r := noting(d, func(ctx context.Context, req changes.TypedReconcileRequest[*corev1.ConfigMap]) (changes.ReconcileResult, error) {
		if len(req.Object.Data) > 0 {
			whole.Store(true)
		}
		if req.Action != changes.ReconcileActionCreated {
			return changes.ReconcileResult{}, nil
		}
		if most.Store(max(most.Load(), running.Add(1))); running.Load() == 2 {
			close(together)
		}
		select {
		case <-together: // each waits for the other
		case <-ctx.Done():
		}
		running.Add(-1)
		return changes.ReconcileResult{}, ctx.Err()
	})
	b.start(nil, &corev1.ConfigMap{}, r, changes.Options{
		CacheOptions: &cache.Options{
			SyncPeriod:        &period,
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
	b.create("x", "1")
	b.create("y", "1")
	b.until("both are resynced by the cache", func() (bool, string) {
		read := d.read()
		return slices.Contains(read, "Resynced x") && slices.Contains(read, "Resynced y"), cmp.Diff(nil, read)
	})
	if whole.Load() || most.Load() != 2 {
		t.Errorf("what the cache strips is there: %t; at most %d at a time", whole.Load(), most.Load())
	}
	b.delete("x")
	b.delete("y")
	b.untilGone("x")
	b.untilGone("y")
}
