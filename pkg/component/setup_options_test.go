// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

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
