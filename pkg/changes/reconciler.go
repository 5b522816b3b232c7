// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReconcileAction is the kind of a change of an object.
type ReconcileAction string

const (
	// ReconcileActionUnknown is the zero value. No reconciler is called with it.
	ReconcileActionUnknown ReconcileAction = ""
	// ReconcileActionCreated is for an object that was not handled successfully
	// before: by this process or, with an opinionated reconciler, by any.
	ReconcileActionCreated ReconcileAction = "Created"
	// ReconcileActionUpdated is for an object that changed since this process
	// handled it successfully.
	ReconcileActionUpdated ReconcileAction = "Updated"
	// ReconcileActionDeleted is for an object that is being deleted (opinionated), or
	// that is gone (plain, or if another client removed our finalizer).
	ReconcileActionDeleted ReconcileAction = "Deleted"
	// ReconcileActionResynced is for an object that was handled before and of which
	// no change was observed: after a restart, and periodically. It may have changed while
	// no process was running.
	ReconcileActionResynced ReconcileAction = "Resynced"
)

// ResourceAction is the verb of an API server for a change of an object.
type ResourceAction string

// The verbs that have a ReconcileAction.
const (
	ResourceActionCreate ResourceAction = "CREATE"
	ResourceActionUpdate ResourceAction = "UPDATE"
	ResourceActionDelete ResourceAction = "DELETE"
)

// ResourceActionFromReconcile returns the verb that led to the action. It is empty for
// ReconcileActionResynced, which no verb leads to, and for an unknown action.
func ResourceActionFromReconcile(action ReconcileAction) ResourceAction {
	switch action {
	case ReconcileActionCreated:
		return ResourceActionCreate
	case ReconcileActionUpdated:
		return ResourceActionUpdate
	case ReconcileActionDeleted:
		return ResourceActionDelete
	default:
		return ""
	}
}

// ReconcileActionFromResource returns the action that a verb leads to, or
// ReconcileActionUnknown.
func ReconcileActionFromResource(action ResourceAction) ReconcileAction {
	switch action {
	case ResourceActionCreate:
		return ReconcileActionCreated
	case ResourceActionUpdate:
		return ReconcileActionUpdated
	case ResourceActionDelete:
		return ReconcileActionDeleted
	default:
		return ReconcileActionUnknown
	}
}

// Reconciler is called for every change of the objects of a kind. Calls for one
// object never overlap. [TypedReconciler] and [Watcher] implement it.
type Reconciler interface {
	Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error)
}

// ReconcileRequest is one call. The objects are copies: the reconciler may change
// them.
type ReconcileRequest struct {
	// Action is the kind of the change.
	Action ReconcileAction
	// Object is the newest state that is known; in a retry, too. If the object is
	// gone it is the last one.
	Object client.Object
	// Old is the last state that this process handled successfully; nil unless the
	// Action is ReconcileActionUpdated. Changes in between may have been coalesced.
	Old client.Object
	// State is the state that the last attempt returned, if this is a retry of it: the same object,
	// unchanged but for status and metadata. Otherwise it is nil.
	State map[string]any
}

// ReconcileResult is the answer to a call that did not fail.
type ReconcileResult struct {
	// RequeueAfter, if it is positive, means that the work is not done, and is the delay of the
	// next call with the same Action. Together with an error it replaces the RetryPolicy.
	RequeueAfter time.Duration
	// State is given to the next attempt. It is in memory only, so nothing may depend
	// on it. It is dropped when the work is done and when the object changes.
	State map[string]any
}

// TypedReconciler is a Reconciler of objects of the type T that calls a function.
type TypedReconciler[T client.Object] struct {
	// ReconcileFunc is the function. A controller demands it; without a controller,
	// a nil one does nothing.
	ReconcileFunc func(ctx context.Context, req TypedReconcileRequest[T]) (ReconcileResult, error)
}

// TypedReconcileRequest is a ReconcileRequest with objects of the type T.
type TypedReconcileRequest[T client.Object] struct {
	Action ReconcileAction
	Object T
	Old    T
	State  map[string]any
}

// Reconcile implements Reconciler. The error is a *CannotCastError if the objects
// are of another type.
func (r *TypedReconciler[T]) Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error) {
	typed := TypedReconcileRequest[T]{Action: req.Action, State: req.State}
	var err error
	if typed.Object, err = cast[T](req.Object); err != nil {
		return ReconcileResult{}, err
	}
	if typed.Old, err = cast[T](req.Old); err != nil {
		return ReconcileResult{}, err
	}
	if r.ReconcileFunc == nil {
		return ReconcileResult{}, nil
	}
	return r.ReconcileFunc(ctx, typed)
}

// accepts returns why there can be no controller for such objects.
func (r *TypedReconciler[T]) accepts(obj client.Object) error {
	_, err := cast[T](obj)
	if r.ReconcileFunc == nil {
		err = errors.Join(err, errors.New("the ReconcileFunc is nil"))
	}
	return err
}

// CannotCastError means that an object is not of the type that the reconciler is for.
type CannotCastError struct {
	// Object is the object's type and Wanted the reconciler's.
	Object, Wanted string
}

// Error names both types.
func (e *CannotCastError) Error() string {
	return fmt.Sprintf("the objects are %s, and the reconciler is for %s", e.Object, e.Wanted)
}

// cast returns the object as a T; the zero value for no object.
func cast[T client.Object](obj client.Object) (T, error) {
	typed, ok := obj.(T)
	if !ok && obj != nil {
		return typed, &CannotCastError{Object: fmt.Sprintf("%T", obj), Wanted: reflect.TypeFor[T]().String()}
	}
	return typed, nil
}

// Watcher is a Reconciler with a function for each action. A nil function does nothing, but for
// SyncFunc. A function that fails is called again according to the RetryPolicy, with the newest
// state.
type Watcher[T client.Object] struct {
	// AddFunc is called for a created object. It must bear to be called again for an object that it
	// has handled.
	AddFunc func(ctx context.Context, obj T) error
	// UpdateFunc is called with the last state that was handled, and the newest one.
	UpdateFunc func(ctx context.Context, oldObj, newObj T) error
	// DeleteFunc is called for an object that is being deleted, or gone.
	DeleteFunc func(ctx context.Context, obj T) error
	// SyncFunc is called for an object without an observed change, after a restart and
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

// accepts returns why there can be no controller for such objects.
func (w *Watcher[T]) accepts(obj client.Object) error {
	_, err := cast[T](obj)
	if w.AddFunc == nil && w.UpdateFunc == nil && w.DeleteFunc == nil && w.SyncFunc == nil {
		err = errors.Join(err, errors.New("the watcher has no function"))
	}
	return err
}
