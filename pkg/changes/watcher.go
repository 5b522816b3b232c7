// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Watcher is a Reconciler with a function for each action. A nil function does
// nothing, but for SyncFunc. A function that fails is called again as the
// RetryPolicy says, with the newest state.
type Watcher[T client.Object] struct {
	// AddFunc is called for a created object. It must bear to be called again for
	// one that it has handled.
	AddFunc func(ctx context.Context, obj T) error
	// UpdateFunc is called with the last state that was handled, and the newest one.
	UpdateFunc func(ctx context.Context, oldObj, newObj T) error
	// DeleteFunc is called for an object that is being deleted, or gone.
	DeleteFunc func(ctx context.Context, obj T) error
	// SyncFunc is called for an object of which no change is known, after a restart and
	// periodically. If it is nil, AddFunc is called.
	SyncFunc func(ctx context.Context, obj T) error
}

// Reconcile implements Reconciler. The error is a *CannotCastError if the objects
// are of another type.
func (w *Watcher[T]) Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error) {
	obj, err := cast[T](req.Object)
	if err != nil {
		return ReconcileResult{}, err
	}
	old, err := cast[T](req.Old)
	if err != nil {
		return ReconcileResult{}, err
	}
	return ReconcileResult{}, w.dispatch(ctx, req.Action, old, obj)
}

func (w *Watcher[T]) dispatch(ctx context.Context, action ReconcileAction, old, obj T) error {
	if action == ReconcileActionUpdated {
		if w.UpdateFunc == nil {
			return nil
		}
		return w.UpdateFunc(ctx, old, obj)
	}
	var f func(context.Context, T) error
	switch action {
	case ReconcileActionCreated:
		f = w.AddFunc
	case ReconcileActionDeleted:
		f = w.DeleteFunc
	case ReconcileActionResynced:
		if f = w.SyncFunc; f == nil {
			f = w.AddFunc
		}
	}
	if f == nil {
		return nil
	}
	return f(ctx, obj)
}

// accepts reports what stands against a controller for such objects.
func (w *Watcher[T]) accepts(obj client.Object) error {
	_, err := cast[T](obj)
	if w.AddFunc == nil && w.UpdateFunc == nil && w.DeleteFunc == nil && w.SyncFunc == nil {
		err = errors.Join(err, errors.New("the watcher has no function"))
	}
	return err
}
