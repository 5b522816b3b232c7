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

// Loop runs a Handler. It implements reconcile.Reconciler and is safe for
// concurrent use with different objects, as a controller does.
type Loop[T client.Object] struct {
	handler  Handler[T]
	sessions *Sessions[T]
}

var _ reconcile.Reconciler = (*Loop[client.Object])(nil)

// NewLoop returns a Loop for the handler. The error names every mistake in the
// options.
func NewLoop[T client.Object](handler Handler[T], options Options[T]) (*Loop[T], error) {
	sessions, err := NewSessions(options)
	if v := reflect.ValueOf(handler); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		err = errors.Join(setupError[T](errors.New("the handler is nil")), err)
	}
	if err != nil {
		return nil, err
	}
	return &Loop[T]{handler: handler, sessions: sessions}, nil
}

// Reconcile reconciles one object. It never panics for what a handler does.
func (l *Loop[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	session, err := l.sessions.Open(ctx, request.NamespacedName, l.wishes)
	if err != nil {
		return reconcile.Result{}, err
	}
	obj := session.Object
	session.Run(ctx, func(ctx context.Context) (result.Result, error) {
		switch session.Phase {
		case PhaseSkip:
			return result.Empty, l.handler.UpdateStatus(ctx, obj)
		case PhaseClaim, PhaseApply:
			// A handler may have to claim more than it did when the object was new.
			if err := l.handler.Claim(ctx, obj); err != nil {
				return result.Empty, err
			}
			if err := session.Claim(ctx); err != nil {
				return result.Empty, err
			}
			return l.handler.CreateOrUpdate(ctx, obj, session.Commit)
		case PhaseDelete:
			return l.handler.Delete(ctx, obj, session.Commit)
		default:
			return result.Empty, nil
		}
	})
	session.Release(ctx, func(ctx context.Context, _ bool) error {
		if releaser, ok := l.handler.(Releaser[T]); ok {
			return releaser.Release(ctx, obj)
		}
		return nil
	})
	if session.Gone {
		l.finished(ctx, request.NamespacedName)
	}
	return session.Close(ctx, nil)
}

func (l *Loop[T]) wishes(obj T) (wishes Wishes) {
	if s, ok := l.handler.(Suspender[T]); ok {
		wishes.Suspended = s.Suspended(obj)
	}
	if d, ok := l.handler.(Detacher[T]); ok {
		wishes.Detached = d.Detached(obj)
	}
	return wishes
}

// finished lets the handler forget an object.
func (l *Loop[T]) finished(ctx context.Context, key client.ObjectKey) {
	if finisher, ok := l.handler.(Finisher); ok {
		logPanic(ctx, contain(func() error {
			finisher.Finished(ctx, key)
			return nil
		}))
	}
}
