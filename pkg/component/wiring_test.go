// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
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
	checkMistakes(t, r.SetupWithManagerAndBuilder(nowhere{}, &ctrl.Builder{}), "set up before")
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
		check(t, r.Trigger("shop", strconv.Itoa(i)))
	}
	if err := r.Trigger("shop", "0"); err != nil {
		t.Errorf("of one that waits already: %v", err)
	}
	if err := r.Trigger("shop", "one-more"); !errors.Is(err, ErrTriggersFull) {
		t.Errorf("error %v", err)
	}
}

// configured is a manager with options for its controllers.
type configured struct {
	ctrl.Manager
	options config.Controller
}

func (c configured) GetControllerOptions() config.Controller { return c.options }

func TestConcurrency(t *testing.T) {
	tests := []struct {
		name    string
		options ReconcilerOptions
		manager config.Controller
		want    int // 0 leaves it to the manager
	}{
		{name: "five by default", want: 5},
		{name: "the option", options: ReconcilerOptions{Controller: ControllerOptions{MaxConcurrentReconciles: new(9)}}, want: 9},
		{name: "the manager's", manager: config.Controller{MaxConcurrentReconciles: 3}},
		{name: "the manager's for the kind", manager: config.Controller{GroupKindConcurrency: map[string]int{"Widget": 2}}},
		{name: "the option before the manager's", options: ReconcilerOptions{Controller: ControllerOptions{MaxConcurrentReconciles: new(1)}}, manager: config.Controller{MaxConcurrentReconciles: 3}, want: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := testSettings(t, test.options)
			if got := s.controllerOptions(configured{options: test.manager}); got.MaxConcurrentReconciles != test.want || got.RateLimiter == nil {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestRateLimiter(t *testing.T) {
	own := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
	s := testSettings(t, ReconcilerOptions{Controller: ControllerOptions{RateLimiter: own}})
	if s.controllerOptions(configured{}).RateLimiter != own {
		t.Error("the option is ignored")
	}
}

func TestMistakesInTheOptionsOfTheSetup(t *testing.T) {
	_, err := resolveOptions("a", ReconcilerOptions{
		Controller: ControllerOptions{
			MaxConcurrentReconciles: new(0),
			LabelSelector:           &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
		}, Operator: OperatorOptions{ClusterUID: new("")},
	})
	checkMistakes(t, err, `option MaxConcurrentReconciles 0|option ClusterUID is empty|option LabelSelector: "Near"`)
}

func TestOnlyEventsOfTheShardPass(t *testing.T) {
	selector := testSettings(t, ReconcilerOptions{Controller: ControllerOptions{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"shard": "a"}}}}).selector
	of := func(shard string) *widget {
		w := newWidget()
		w.Labels = map[string]string{"shard": shard}
		return w
	}
	p := inShard(selector)
	for name, got := range map[string]bool{
		"created":          p.Create(event.CreateEvent{Object: of("a")}),
		"deleted":          p.Delete(event.DeleteEvent{Object: of("a")}),
		"updated":          p.Update(event.UpdateEvent{ObjectOld: of("a"), ObjectNew: of("a")}),
		"came":             p.Update(event.UpdateEvent{ObjectOld: of("b"), ObjectNew: of("a")}),
		"left":             p.Update(event.UpdateEvent{ObjectOld: of("a"), ObjectNew: of("b")}),
		"everything":       inShard(nil).Create(event.CreateEvent{Object: of("b")}),
		"not created":      !p.Create(event.CreateEvent{Object: of("b")}),
		"not deleted":      !p.Delete(event.DeleteEvent{Object: newWidget()}),
		"not updated":      !p.Update(event.UpdateEvent{ObjectOld: of("b"), ObjectNew: of("c")}),
		"not without both": !p.Update(event.UpdateEvent{}),
	} {
		if !got {
			t.Error(name)
		}
	}
}

func TestRequestsAreThrottledOnlyIfTheConfigurationSaysSo(t *testing.T) {
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	tests := []struct {
		name   string
		config rest.Config
		want   float32
	}{
		{"nothing said", rest.Config{}, -1},
		{"a pace", rest.Config{QPS: 20}, 20},
		{"a negative pace, which is none", rest.Config{QPS: -5, Burst: -5}, -5},
		{"a limiter", rest.Config{RateLimiter: limiter}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := test.config.QPS
			got := unthrottled(&test.config)
			if got.QPS != test.want || got.RateLimiter != test.config.RateLimiter || test.config.QPS != before {
				t.Errorf("%v requests per second, limiter %v; the manager's configuration became %v", got.QPS, got.RateLimiter, test.config.QPS)
			}
			got.Host = "https://127.0.0.1:1"
			if _, err := rest.HTTPClientFor(got); err != nil {
				t.Error(err)
			}
		})
	}
}
