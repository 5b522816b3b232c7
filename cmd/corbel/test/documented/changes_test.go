// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/changes"
)

// MyKind stands for a kind.
type MyKind = corev1.ConfigMap

// The names and signatures of the reconcilers and watchers of the Grafana app SDK.
var (
	_ func(changes.Reconciler, context.Context, changes.ReconcileRequest) (changes.ReconcileResult, error) = changes.Reconciler.Reconcile

	_ = changes.ReconcileRequest{Action: changes.ReconcileActionUnknown, Object: &MyKind{}, Old: &MyKind{}, State: map[string]any{}}
	_ = changes.TypedReconcileRequest[*MyKind]{Action: changes.ReconcileActionUpdated, Object: &MyKind{}, Old: &MyKind{}, State: map[string]any{}}
	_ = changes.ReconcileResult{RequeueAfter: time.Minute, State: map[string]any{}}
	_ = []changes.ReconcileAction{
		changes.ReconcileActionUnknown, changes.ReconcileActionCreated, changes.ReconcileActionUpdated,
		changes.ReconcileActionDeleted, changes.ReconcileActionResynced,
	}
	_ func(changes.ReconcileAction) changes.ResourceAction = changes.ResourceActionFromReconcile
	_ func(changes.ResourceAction) changes.ReconcileAction = changes.ReconcileActionFromResource

	_ changes.Reconciler = &changes.Watcher[*MyKind]{
		AddFunc:    func(context.Context, *MyKind) error { return nil },
		UpdateFunc: func(context.Context, *MyKind, *MyKind) error { return nil },
		DeleteFunc: func(context.Context, *MyKind) error { return nil },
		SyncFunc:   func(context.Context, *MyKind) error { return nil },
	}
	_ changes.Reconciler = &changes.OpinionatedReconciler{Finalizer: "example.com/mykind"}
	_ changes.Reconciler = &changes.OpinionatedWatcher[*MyKind]{Finalizer: "example.com/mykind"}
	_ error              = (*changes.CannotCastError)(nil)

	_ func(string, client.Object, changes.Reconciler, changes.Options) *changes.Controller = changes.NewController
	_ func(*changes.Controller, ctrl.Manager) error                                        = (*changes.Controller).SetupWithManager
	_                                                                                      = changes.Options{
		RetryPolicy: changes.DefaultRetryPolicy, Changed: changes.ContentChanged, ResyncInterval: time.Hour,
		CacheOptions: &cache.Options{}, NewCache: cache.New,
	}
	_                     = changes.AnythingChanged
	_ changes.RetryPolicy = func(error, int) (bool, time.Duration) { return true, 0 }
	_                     = []changes.RetryPolicy{
		changes.ExponentialBackoffRetryPolicy(time.Second, time.Minute), changes.FixedRetryPolicy(time.Second), changes.NoRetryPolicy(),
	}
)

// The example of its documentation.
var _ = func(apply, remove func(namespace, name string) error, isRetryable func(error) bool, handled func(*MyKind) bool) changes.Reconciler {
	return &changes.TypedReconciler[*MyKind]{
		ReconcileFunc: func(ctx context.Context, req changes.TypedReconcileRequest[*MyKind]) (changes.ReconcileResult, error) {
			ctrl.LoggerFrom(ctx).Info("Reconcile request", "name", req.Object.GetName(), "action", changes.ResourceActionFromReconcile(req.Action))
			if req.Action == changes.ReconcileActionDeleted {
				return changes.ReconcileResult{}, remove(req.Object.GetNamespace(), req.Object.GetName())
			}
			if handled(req.Object) {
				return changes.ReconcileResult{}, nil
			}
			if err := apply(req.Object.GetNamespace(), req.Object.GetName()); err != nil {
				if isRetryable(err) {
					return changes.ReconcileResult{
						RequeueAfter: time.Minute,
					}, nil
				}
				return changes.ReconcileResult{}, err
			}
			return changes.ReconcileResult{}, nil
		},
	}
}
