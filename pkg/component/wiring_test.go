// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strconv"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// headless has no status.
type headless struct{ widget }

func (h *headless) GetStatus() *Status { return nil }

// explosive has methods that do not survive an empty component.
type explosive struct{ widget }

func (e *explosive) GetStatus() *Status { panic("oh") }

func TestWiringMistakesAreErrorsOfTheSetup(t *testing.T) {
	good := manifests.GeneratorFunc(nothing)
	var noHook HookFunc[*widget]
	tests := []struct {
		name  string
		setup func() error
		err   string
	}{
		{"all mistakes at once", func() error {
			return NewReconciler[*widget]("Shop!", nil, ReconcilerOptions{Finalizer: new("orphan")}).
				WithPostReadHook(noHook).WithPreReconcileHook(noHook).WithPostReconcileHook(noHook).
				WithPreDeleteHook(noHook).WithPostDeleteHook(noHook).setUpNowhere()
		}, `reconciler name "Shop!"|resource generator: the generator is nil|Finalizer "orphan"|post-read hook 1 is nil|` +
			"pre-reconcile hook 1 is nil|post-reconcile hook 1 is nil|pre-delete hook 1 is nil|post-delete hook 1 is nil"},
		{"no manager", func() error {
			return NewReconciler[*widget]("a", good, ReconcilerOptions{}).SetupWithManager(nil)
		}, "set up reconciler a: the manager is nil"},
		{"no builder", func() error {
			return NewReconciler[*widget]("a", good, ReconcilerOptions{}).SetupWithManagerAndBuilder(nowhere{}, nil)
		}, "set up reconciler a: the builder is nil"},
		{"no pointer to a struct", func() error {
			return NewReconciler[Component]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "component.Component: must be a pointer to a struct"},
		{"a component without a status", func() error {
			return NewReconciler[*headless]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "GetStatus must not return nil"},
		{"a component without a spec", func() error {
			return NewReconciler[*specless]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "GetSpec must not return nil"},
		{"a component with methods that panic", func() error {
			return NewReconciler[*explosive]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "a method of an empty component panicked: oh"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkMistakes(t, test.setup(), test.err) })
	}
}

// nowhere is a manager that must not be asked for anything.
type nowhere struct{ ctrl.Manager }

// setUpNowhere is for reconcilers with mistakes, which are found without a manager.
func (r *Reconciler[T]) setUpNowhere() error {
	return r.SetupWithManagerAndBuilder(nowhere{}, &ctrl.Builder{})
}

func TestBeforeTheSetup(t *testing.T) {
	r := NewReconciler[*widget]("a", manifests.GeneratorFunc(nothing), ReconcilerOptions{})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("Reconcile: %v", err)
	}
	if err := r.Trigger("shop", "main"); err == nil {
		t.Error("Trigger before the setup is no error")
	}
}

func TestHookAfterTheSetup(t *testing.T) {
	r := NewReconciler[*widget]("a", manifests.GeneratorFunc(nothing), ReconcilerOptions{})
	r.running.Store(&running{})
	checkMistakes(t, r.SetupWithManager(nowhere{}), "set up before")
	r.WithPreDeleteHook(func(context.Context, client.Client, *widget) error { return nil })
	_, err := r.Reconcile(t.Context(), ctrl.Request{})
	if !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("error %v", err)
	}
	checkMistakes(t, err, "a pre-delete hook was registered after the setup")
}

func TestTriggerNeverBlocks(t *testing.T) {
	r := NewReconciler[*widget]("a", manifests.GeneratorFunc(nothing), ReconcilerOptions{})
	r.running.Store(&running{triggers: trigger.New()})
	for i := range trigger.MaxWaiting {
		if err := r.Trigger("shop", strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Trigger("shop", "0"); err != nil {
		t.Errorf("of one that waits already: %v", err)
	}
	if err := r.Trigger("shop", "one-more"); !errors.Is(err, ErrTriggersFull) {
		t.Errorf("error %v", err)
	}
}
