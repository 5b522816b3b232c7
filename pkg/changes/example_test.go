// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/corbel-run/corbel/pkg/changes"
)

// NewMyKindWatcher does with a function for each action what NewMyKindReconciler does.
func NewMyKindWatcher(infoClient *InfoClient) *changes.Watcher[*MyKind] {
	apply := func(_ context.Context, obj *MyKind) error {
		return infoClient.ApplyInfo(obj.GetNamespace(), obj.GetName(), obj.Spec.SomeInfo, obj.Spec.OtherInfo)
	}
	return &changes.Watcher[*MyKind]{
		AddFunc:    apply,
		UpdateFunc: func(ctx context.Context, _, newObj *MyKind) error { return apply(ctx, newObj) },
		DeleteFunc: func(_ context.Context, obj *MyKind) error {
			return infoClient.Delete(obj.GetNamespace(), obj.GetName())
		},
	}
}

// A watcher has a function for each action.
func ExampleWatcher() {
	ctx, info := context.Background(), &InfoClient{infos: map[string]string{}}
	watcher := NewMyKindWatcher(info)
	obj := func(some string) *MyKind {
		return &MyKind{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: MyKindSpec{SomeInfo: some, OtherInfo: "other"}}
	}
	for _, req := range []changes.ReconcileRequest{
		{Action: changes.ReconcileActionCreated, Object: obj("some")},
		{Action: changes.ReconcileActionUpdated, Object: obj("more"), Old: obj("some")},
		{Action: changes.ReconcileActionResynced, Object: obj("more")},
		{Action: changes.ReconcileActionDeleted, Object: obj("more")},
	} {
		_, err := watcher.Reconcile(ctx, req)
		fmt.Println(req.Action, err, info.infos)
	}
	// Output:
	// Created <nil> map[ns/a:some other]
	// Updated <nil> map[ns/a:more other]
	// Resynced <nil> map[ns/a:more other]
	// Deleted <nil> map[]
}

// An operator with an opinionated watcher, two workers and a cache of its own.
func ExampleController() {
	mgr, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{LeaderElection: true, LeaderElectionID: "example.com"})
	if err != nil {
		panic(err)
	}
	watcher := &changes.OpinionatedWatcher[*corev1.ConfigMap]{
		Finalizer: "example.com/announced",
		Watcher: changes.Watcher[*corev1.ConfigMap]{
			AddFunc: func(ctx context.Context, obj *corev1.ConfigMap) error {
				fmt.Println("new, or not handled before:", obj.Name)
				return nil
			},
			SyncFunc: func(ctx context.Context, obj *corev1.ConfigMap) error {
				fmt.Println("handled before, maybe changed since:", obj.Name)
				return nil
			},
			UpdateFunc: func(ctx context.Context, oldObj, newObj *corev1.ConfigMap) error {
				fmt.Println("changed:", oldObj.Data, newObj.Data)
				return nil
			},
			DeleteFunc: func(ctx context.Context, obj *corev1.ConfigMap) error {
				fmt.Println("going:", obj.Name)
				return nil
			},
		},
	}
	err = changes.NewController("announce", &corev1.ConfigMap{}, watcher, changes.Options{
		CacheOptions: &cache.Options{DefaultNamespaces: map[string]cache.Config{"news": {}}},
		Controller:   controller.Options{MaxConcurrentReconciles: 2},
	}).SetupWithManager(mgr)
	if err != nil {
		panic(err)
	}
	if err := mgr.Start(ctrl.SetupSignalHandler()); err != nil {
		panic(err)
	}
}

// A policy of one's own gives up on some errors, and otherwise does as another one.
func ExampleRetryPolicy() {
	errRefused := errors.New("refused")
	policy := func(err error, attempt int) (bool, time.Duration) {
		if errors.Is(err, errRefused) || attempt >= 6 {
			return false, 0
		}
		return changes.ExponentialBackoffRetryPolicy(5*time.Second, time.Minute)(err, attempt)
	}
	for attempt := range 8 {
		fmt.Println(policy(errors.New("no answer"), attempt))
	}
	fmt.Println(policy(errRefused, 0))
	// Output:
	// true 5s
	// true 10s
	// true 20s
	// true 40s
	// true 1m0s
	// true 1m0s
	// false 0s
	// false 0s
	// false 0s
}
