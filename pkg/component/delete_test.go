// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

func deletedWidget(inventory v1alpha1.Inventory, finalizers ...string) *widget {
	obj := newWidget()
	obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
	obj.Finalizers = append([]string{"test.corbel.run"}, finalizers...)
	obj.Status.Inventory = inventory
	return obj
}

func TestDelete(t *testing.T) {
	blocker := report.Blocker{Dependent: "CustomResourceDefinition foos.example.com", Message: "2 instances exist"}
	waiting := []report.Wait{waitFor("/Namespace old", "Terminating", "is being deleted")}
	refused := &reconciler.UnidentifiedTargetError{Server: "https://there.example.com", Err: errors.New("Unauthorized")}
	kubeconfig := func(w *widget) { w.Spec.KubeConfig = &KubeConfigSpec{} }
	tests := []struct {
		name       string
		engine     fakeEngine
		inventory  v1alpha1.Inventory
		finalizers []string
		change     func(*widget)
		done       bool
		touched    bool
		state      v1alpha1.State
		reason     string
		message    string
	}{
		{name: "everything goes", inventory: someInventory, done: true, touched: true},
		{name: "foreign instances block before anything is touched", engine: fakeEngine{blockers: []report.Blocker{blocker}}, inventory: someInventory,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: "CustomResourceDefinition foos.example.com: 2 instances exist"},
		{name: "foreign finalizers block", inventory: someInventory, finalizers: []string{"x.example.com/y", "z.example.com/y"},
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: "Widget shop/main: has the finalizer x.example.com/y, z.example.com/y, which is not ours"},
		{name: "finalizers of the server are not foreign", inventory: someInventory, finalizers: []string{"foregroundDeletion"}, done: true, touched: true},
		{name: "it takes time", engine: fakeEngine{outcome: reconciler.Outcome{Waiting: waiting, Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionProcessing, message: "Namespace old: is being deleted"},
		{name: "it fails", engine: fakeEngine{err: errors.New("delete ConfigMap shop/a: no"), outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonError, message: "delete ConfigMap shop/a: no"},
		{name: "a type is going", engine: fakeEngine{blockersErr: fmt.Errorf("look for foreign instances: %w", &cluster.PendingTypesError{Group: "example.com", Version: "v1"})}, inventory: someInventory,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionProcessing, message: "look for foreign instances: the server lists example.com/v1, but does not know its types yet"},
		{name: "types are going, says the engine", engine: fakeEngine{err: errors.Join(&cluster.PendingTypesError{Group: "a", Version: "v1"}, &cluster.PendingTypesError{Group: "b", Version: "v1"}), outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionProcessing, message: "the server lists a/v1, but does not know its types yet; the server lists b/v1, but does not know its types yet"},
		{name: "a type is going, and something is wrong", engine: fakeEngine{err: errors.Join(&cluster.PendingTypesError{Group: "a", Version: "v1"}, errors.New("no")), outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonError, message: "the server lists a/v1, but does not know its types yet; no"},
		{name: "it is forbidden", engine: fakeEngine{err: &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: "no"}, outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonForbidden, message: `ConfigMap shop/a: no; ` +
				`to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`},
		{name: "without its target it waits, because something is left", inventory: someInventory, change: kubeconfig,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: `Widget shop/main: spec.kubeConfig.secretRef: the name of the Secret is missing; ` +
				`to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`},
		{name: "without its target it goes, because nothing is left", change: kubeconfig, done: true},
		{name: "a target that refuses it holds nothing that was never written there", engine: fakeEngine{err: refused}, done: true, touched: true},
		{name: "a target that refuses it is named, because something is left", engine: fakeEngine{err: refused, outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: `Widget shop/main: the cluster at https://there.example.com cannot be identified: Unauthorized; ` +
				`to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`},
		{name: "without its target it still minds finalizers", change: kubeconfig, finalizers: []string{"x.example.com/y"},
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: "Widget shop/main: has the finalizer x.example.com/y, which is not ours"},
		{name: "mistakes that do not matter for a deletion", inventory: someInventory, done: true, touched: true,
			change: func(w *widget) { w.Spec.UpdatePolicy, w.Spec.Namespace = "Maybe", "not.legal" }},
		{name: "mistakes that do", inventory: someInventory, change: func(w *widget) { w.Spec.AdditionalManagedTypes = []v1alpha1.TypeInfo{{Group: "?", Kind: "Foo"}} },
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonSpecInvalid, message: `Widget shop/main: additional managed type 1: group "?": must be the name of a group, "*", or "*." and a suffix`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := test.engine
			h, _ := testHandler(t, &engine)
			obj := deletedWidget(test.inventory, test.finalizers...)
			if test.change != nil {
				test.change(obj)
			}
			var hooks []string
			for _, point := range []hookPoint{preDelete, postDelete} {
				h.code.hooks[point] = hooksOf(func(context.Context, client.Client, *widget) error {
					hooks = append(hooks, string(point))
					return nil
				})
			}
			if test.done {
				if res, err := h.deletion.delete(t.Context(), obj, noCommit); res != result.Success || err != nil {
					t.Errorf("result %v, error %v", res, err)
				}
				if len(hooks) != 2 {
					t.Errorf("hooks %v", hooks)
				}
			} else {
				reconcileOnce(t, h, obj)
				if state, reason, message := obj.GetStatus().GetState(); state != test.state || reason != test.reason || message != test.message {
					t.Errorf("%s, %s: %s", state, reason, message)
				}
				if len(hooks) > 1 {
					t.Errorf("hooks %v", hooks)
				}
			}
			if touched := len(engine.deleted) > 0; touched != test.touched {
				t.Errorf("the engine deleted: %v", touched)
			}
		})
	}
}

func TestADeletionThatIsForbiddenLikeTheApplyBeforeItIsAnEvent(t *testing.T) {
	engine := &fakeEngine{err: &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: strings.Repeat("no", 1000)}, outcome: reconciler.Outcome{Inventory: someInventory}}
	h, log := testHandler(t, engine)
	obj := deletedWidget(someInventory)
	deleted := obj.DeletionTimestamp
	obj.DeletionTimestamp = nil
	reconcileOnce(t, h, obj)
	obj.DeletionTimestamp, log.lines = deleted, nil
	for range 2 {
		reconcileOnce(t, h, obj)
	}
	const hint = `to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`
	if len(log.lines) != 1 || !strings.HasPrefix(log.lines[0], "Warning|Forbidden|Delete|ConfigMap shop/a: no") || !strings.HasSuffix(log.lines[0], hint) {
		t.Errorf("events: %q", log.lines)
	}
	if _, _, message := obj.GetStatus().GetState(); !strings.HasSuffix(message, hint) || len(message) > 1024 {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

// A chart of many objects on a server that refuses requests now and then fails often in a row, each time for another object.
func TestProgressShortensTheDelayAfterAnError(t *testing.T) {
	for name, reconcile := range map[string]func(*testing.T, *handler, *widget){
		"apply": func(t *testing.T, h *handler, obj *widget) { reconcileOnce(t, h, obj) },
		"delete": func(t *testing.T, h *handler, obj *widget) {
			obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
			reconcileOnce(t, h, obj)
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &fakeEngine{err: errors.New("create ConfigMap shop/a: no"), outcome: reconciler.Outcome{Inventory: someInventory, Total: 3, Settled: 1}}
			h, _ := testHandler(t, engine)
			h.conclude.Author.Limiter = backoff.NewRateLimiter()
			obj := newWidget()
			obj.Finalizers, obj.Status.Inventory = []string{"test.corbel.run"}, someInventory
			failures := func() int {
				reconcile(t, h, obj)
				request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
				h.conclude.Author.Limiter.When(request)
				return h.conclude.Author.Limiter.NumRequeues(request)
			}
			for n := range 10 {
				if got := failures(); got != n+1 {
					t.Fatalf("%d failures count as %d", n+1, got)
				}
			}
			engine.outcome.Steps = map[string]int{"replace": 5} // in vain: no more objects are done
			if got := failures(); got != 11 {
				t.Errorf("after writes in vain %d failures count, want 11", got)
			}
			engine.outcome.Settled = 2
			if got := failures(); got != 5 {
				t.Errorf("after progress %d failures count, want 5", got)
			}
		})
	}
}

func TestANamespaceIsTerminatingOnceItIsBeingDeletedOrGone(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{}) // its cluster has the namespace shop
	if h.deletion.terminating(t.Context(), "shop") != nil {
		t.Error("a namespace that is not being deleted is terminating")
	}
	if gone := h.deletion.terminating(t.Context(), "gone"); gone == nil || gone.Name != "gone" {
		t.Errorf("a namespace that is gone: %v", gone)
	}
}
