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

// Reconciler is called for every change of the objects of a kind. Calls for one
// object never overlap. [TypedReconciler] and [Watcher] implement it.
type Reconciler interface {
	Reconcile(ctx context.Context, req ReconcileRequest) (ReconcileResult, error)
}

// ReconcileRequest is one call. The objects are copies: the reconciler may change
// them.
type ReconcileRequest struct {
	// Action is what happened.
	Action ReconcileAction
	// Object is the newest state that is known; in a retry, too. If the object is
	// gone it is the last one.
	Object client.Object
	// Old is the last state that this process handled successfully; nil unless the
	// Action is ReconcileActionUpdated. Changes in between may have been coalesced.
	Old client.Object
	// State is what the last attempt returned, if this is a retry of it: the same
	// object, unchanged but for status and metadata. Otherwise it is nil.
	State map[string]any
}

// ReconcileResult is the answer to a call that did not fail.
type ReconcileResult struct {
	// RequeueAfter, if it is positive, says that the work is not done, and when to call
	// again with the same Action. Together with an error it takes the place of the
	// RetryPolicy.
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

// accepts reports what stands against a controller for such objects.
func (r *TypedReconciler[T]) accepts(obj client.Object) error {
	_, err := cast[T](obj)
	if r.ReconcileFunc == nil {
		err = errors.Join(err, errors.New("the ReconcileFunc is nil"))
	}
	return err
}

// CannotCastError says that an object is not of the type that the reconciler is for.
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
