// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
)

// Reconciler runs a Handler. It implements reconcile.Reconciler and is safe for
// concurrent use with different objects, as a controller does.
type Reconciler[T client.Object] struct {
	handler  Handler[T]
	sessions *Sessions[T]
}

var _ reconcile.Reconciler = (*Reconciler[client.Object])(nil)

// NewReconciler returns a Reconciler for the handler. The error names every mistake in the
// options.
func NewReconciler[T client.Object](handler Handler[T], options Options[T]) (*Reconciler[T], error) {
	sessions, err := NewSessions(options)
	if v := reflect.ValueOf(handler); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.Join(setupError[T](errors.New("the handler is nil")), err)
	}
	if err != nil {
		return nil, err
	}
	return &Reconciler[T]{handler: handler, sessions: sessions}, nil
}

// Reconcile reconciles one object. It never panics for what a handler does.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	session, err := r.sessions.Open(ctx, request.NamespacedName, r.settingsOf)
	if err != nil {
		return reconcile.Result{}, err
	}
	obj := session.Object
	session.Run(ctx, func(ctx context.Context) (result.Result, error) {
		switch session.Phase {
		case PhaseSkip:
			return result.Empty, r.handler.UpdateStatus(ctx, obj)
		case PhaseClaim, PhaseApply:
			// A handler may have to claim more than it did when the object was new.
			if err := r.handler.Claim(ctx, obj); err != nil {
				return result.Empty, err
			}
			if err := session.Claim(ctx); err != nil {
				return result.Empty, err
			}
			return r.handler.CreateOrUpdate(ctx, obj, session.Commit)
		case PhaseDelete:
			return r.handler.Delete(ctx, obj, session.Commit)
		default:
			return result.Empty, nil
		}
	})
	session.Finalize(ctx, func(ctx context.Context) error {
		if finalizer, ok := r.handler.(Finalizer[T]); ok {
			return finalizer.Finalize(ctx, obj)
		}
		return nil
	})
	if forgetter, ok := r.handler.(Forgetter); ok && session.Gone {
		logPanic(ctx, contain(func() error {
			forgetter.ForgetObject(ctx, request.NamespacedName)
			return nil
		}))
	}
	return session.Close(ctx, nil)
}

func (r *Reconciler[T]) settingsOf(obj T) (settings Settings) {
	if s, ok := r.handler.(Suspender[T]); ok {
		settings.Suspended = s.Suspended(obj)
	}
	if o, ok := r.handler.(Orphaner[T]); ok {
		settings.Orphan = o.Orphaned(obj)
	}
	return settings
}
