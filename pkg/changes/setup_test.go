// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/test/check"
)

// idleManager returns a manager that has no server and is not started.
func idleManager(t *testing.T) ctrl.Manager {
	t.Helper()
	mgr, err := ctrl.NewManager(&rest.Config{Host: "127.0.0.1:1"}, ctrl.Options{
		Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	check.NoError(t, err)
	return mgr
}

func watching[T client.Object](finalizer string) *changes.OpinionatedWatcher[T] {
	return &changes.OpinionatedWatcher[T]{Finalizer: finalizer, Watcher: changes.Watcher[T]{AddFunc: func(context.Context, T) error { return nil }}}
}

func TestAllMistakesOfASetupAreOneError(t *testing.T) {
	var missing *changes.TypedReconciler[*corev1.ConfigMap]
	typed := &changes.TypedReconciler[*corev1.Secret]{}
	for _, tc := range []struct {
		name       string
		controller *changes.Controller
		want       []string
	}{
		{"nothing is right", changes.NewController("", &corev1.ConfigMap{}, &changes.OpinionatedReconciler{Reconciler: typed}, changes.Options{
			ResyncInterval: -time.Second,
			Controller:     controller.Options{Reconciler: reconcile.Func(nil), RateLimiter: workqueue.DefaultTypedControllerRateLimiter[reconcile.Request](), EnableWarmup: new(true)},
		}), []string{
			"the name is missing", "the objects are *v1.ConfigMap, and the reconciler is for *v1.Secret", "the ReconcileFunc is nil",
			"the Finalizer is missing", "option ResyncInterval is negative: -1s", "option Controller has a Reconciler", "use the option RetryPolicy", "enables EnableWarmup",
		}},
		{"no kind", changes.NewController("a", nil, typed, changes.Options{}), []string{"the kind is nil"}},
		{"no reconciler", changes.NewController("a", &corev1.ConfigMap{}, nil, changes.Options{}), []string{"the reconciler is nil"}},
		{"a nil pointer", changes.NewController("a", &corev1.ConfigMap{}, missing, changes.Options{}), []string{"the reconciler is nil"}},
		{"a missing reconciler wrapped", changes.NewController("a", &corev1.ConfigMap{}, &changes.OpinionatedReconciler{Finalizer: finalizer}, changes.Options{}), []string{"the reconciler is nil"}},
		{"a value that is not wrapped by reference", changes.NewController("a", &corev1.ConfigMap{}, changes.OpinionatedReconciler{Reconciler: typed}, changes.Options{}), []string{"the Finalizer is missing"}},
		{"twice opinionated", changes.NewController("a", &corev1.ConfigMap{}, &changes.OpinionatedReconciler{Finalizer: finalizer, Reconciler: watching[*corev1.ConfigMap]("example.com/x")}, changes.Options{}), []string{"an opinionated reconciler is wrapped in another one"}},
		{"no function", changes.NewController("a", &corev1.ConfigMap{}, &changes.Watcher[*corev1.ConfigMap]{}, changes.Options{}), []string{"the watcher has no function"}},
		{"no domain", changes.NewController("a", &corev1.ConfigMap{}, watching[*corev1.ConfigMap]("nodomain"), changes.Options{}), []string{`the Finalizer "nodomain"`, "it needs a domain in front"}},
		{"a long name", changes.NewController("a", &corev1.ConfigMap{}, watching[*corev1.ConfigMap]("example.com/"+strings.Repeat("x", 60)), changes.Options{}), []string{"with the suffix -pending", "63"}},
		{"an unknown kind", changes.NewController("a", &MyKind{}, watching[*MyKind](finalizer), changes.Options{}), []string{"the scheme of the manager does not know the kind"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check.Fails(t, tc.controller.SetupWithManager(idleManager(t)), tc.want...)
		})
	}
	check.Fails(t, changes.NewController("a", &corev1.ConfigMap{}, watching[*corev1.ConfigMap](finalizer), changes.Options{}).SetupWithManager(nil), "the manager is nil")
}

func TestASecondVersionOfAKindIsRefused(t *testing.T) {
	mgr := idleManager(t)
	v1 := func(name, finalizer string) *changes.Controller {
		return changes.NewController(name, &autoscalingv1.HorizontalPodAutoscaler{}, watching[*autoscalingv1.HorizontalPodAutoscaler](finalizer), changes.Options{})
	}
	v2 := changes.NewController("third", &autoscalingv2.HorizontalPodAutoscaler{}, watching[*autoscalingv2.HorizontalPodAutoscaler]("example.com/third"), changes.Options{})
	check.NoError(t, v1("first", "example.com/first").SetupWithManager(mgr))
	err := v2.SetupWithManager(mgr)
	check.Fails(t, err, "it watches version v2 of HorizontalPodAutoscaler.autoscaling, and controller first watches version v1")
	for _, taken := range []string{"example.com/first", "example.com/first-pending"} {
		err = v1("second", taken).SetupWithManager(mgr)
		if err == nil || !strings.Contains(err.Error(), "is one of controller first") {
			t.Errorf("a second user of the finalizer %s: %v", taken, err)
		}
	}
	if err := v1("second", "example.com/second").SetupWithManager(mgr); err != nil {
		t.Errorf("a second controller for the same version: %v", err)
	}
	if err := v2.SetupWithManager(idleManager(t)); err != nil {
		t.Errorf("another manager: %v", err)
	}
}
