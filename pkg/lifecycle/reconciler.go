// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/result"
)

// Reconciler runs a Handler. It implements reconcile.Reconciler and is safe for
// concurrent use with different objects, as a controller does.
type Reconciler[T client.Object] struct {
	handler  Handler[T]
	sessions *session.Sessions[T]
}

var _ reconcile.Reconciler = (*Reconciler[client.Object])(nil)

// NewReconciler returns a Reconciler for the handler. The error names every mistake in the
// options.
func NewReconciler[T client.Object](handler Handler[T], options Options[T]) (*Reconciler[T], error) {
	sessions, err := session.New(options.ofSessions())
	if v := reflect.ValueOf(handler); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.Join(session.SetupError[T](errors.New("the handler is nil")), err)
	}
	if err != nil {
		return nil, err
	}
	return &Reconciler[T]{handler: handler, sessions: sessions}, nil
}

// Reconcile reconciles one object. It contains the panics of handlers.
func (r *Reconciler[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := r.sessions.Open(ctx, request.NamespacedName, r.settingsOf)
	if err != nil {
		return reconcile.Result{}, err
	}
	obj := s.Object
	s.Run(ctx, func(ctx context.Context) (result.Result, error) {
		switch s.Phase {
		case session.PhaseSkip:
			return result.Empty, r.handler.UpdateStatus(ctx, obj)
		case session.PhaseClaim, session.PhaseApply:
			// A handler may have to claim more than it did when the object was new.
			if err := r.handler.Claim(ctx, obj); err != nil {
				return result.Empty, err
			}
			if err := s.Claim(ctx); err != nil {
				return result.Empty, err
			}
			return r.handler.CreateOrUpdate(ctx, obj, s.Commit)
		case session.PhaseDelete:
			return r.handler.Delete(ctx, obj, s.Commit)
		default:
			return result.Empty, nil
		}
	})
	s.Finalize(ctx, func(ctx context.Context) error {
		if finalizer, ok := r.handler.(Finalizer[T]); ok {
			return finalizer.Finalize(ctx, obj)
		}
		return nil
	})
	if forgetter, ok := r.handler.(Forgetter); ok && s.Gone {
		err := guard.CallNamed("the handler", func() error {
			forgetter.ForgetObject(ctx, request.NamespacedName)
			return nil
		})
		guard.Log(logf.FromContext(ctx), err, "contained a panic")
	}
	return s.Close(ctx, nil)
}

func (r *Reconciler[T]) settingsOf(obj T) (settings session.Settings) {
	if s, ok := r.handler.(Suspender[T]); ok {
		settings.Suspended = s.Suspended(obj)
	}
	if o, ok := r.handler.(Orphaner[T]); ok {
		settings.Orphan = o.Orphaned(obj)
	}
	return settings
}
