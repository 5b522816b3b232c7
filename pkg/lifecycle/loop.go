// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/patch"
)

// Between these a pass comes again if the type of its object is not served.
const (
	absenceBase  = time.Second
	absenceLimit = 10 * time.Minute
)

// Loop runs a Handler. It implements reconcile.Reconciler and is safe for
// concurrent use with different objects, as a controller does.
type Loop[T client.Object] struct {
	handler  Handler[T]
	options  Options[T]
	kind     string
	activity *backoff.Activity[client.ObjectKey]
	// outdated paces the objects whose definition does not keep their status.
	outdated *backoff.Activity[client.ObjectKey]
	absences *backoff.Activity[client.ObjectKey] // passes in a row that met no served type
	attempts attempts
	told     sync.Map // object key: the last thing that was told once about it
}

var _ reconcile.Reconciler = (*Loop[client.Object])(nil)

// NewLoop returns a Loop for the handler. The error names every mistake in the
// options.
func NewLoop[T client.Object](handler Handler[T], options Options[T]) (*Loop[T], error) {
	var errs []error
	if v := reflect.ValueOf(handler); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		errs = append(errs, errors.New("the handler is nil"))
	}
	errs = append(errs, options.complete())
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("set up the lifecycle of %s: %w", reflect.TypeFor[T](), err)
	}
	gvk, err := options.Client.GroupVersionKindFor(options.New())
	if err != nil {
		return nil, fmt.Errorf("set up the lifecycle of %s: %w", reflect.TypeFor[T](), err)
	}
	return &Loop[T]{
		handler:  handler,
		options:  options,
		kind:     gvk.Kind,
		activity: backoff.DefaultActivity[client.ObjectKey](),
		outdated: backoff.NewActivity[client.ObjectKey](outdatedBase, outdatedLimit),
		absences: backoff.NewActivity[client.ObjectKey](absenceBase, absenceLimit),
	}, nil
}

// Reconcile runs one pass over the object. It never panics for what a handler does.
func (l *Loop[T]) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var (
		out     reconcile.Result
		passErr error
	)
	err := contain(func() error {
		out, passErr = l.runPass(ctx, request.NamespacedName)
		return nil
	})
	if err != nil {
		logPanic(ctx, err)
		return reconcile.Result{}, fmt.Errorf("reconcile %s %s: %w", l.kind, request.NamespacedName, err)
	}
	return out, passErr
}

func (l *Loop[T]) runPass(ctx context.Context, key client.ObjectKey) (reconcile.Result, error) {
	if why, ok := errors.AsType[*LaterError](l.leading()); ok {
		return later(ctx, why), nil
	}
	obj := l.options.New()
	switch err := l.options.Reader.Get(ctx, key, obj); {
	case cluster.IsGone(err, key.Name):
		l.finished(ctx, key)
		return reconcile.Result{}, nil
	case apierrors.IsNotFound(err):
		return l.unserved(ctx, key, err), nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("read %s %s: %w", l.kind, key, err)
	}
	l.absences.Forget(key)
	f, askErr := l.factsOf(ctx, obj)
	stage := stageOf(f)
	if stage == StageIgnore {
		l.ignore(ctx, obj)
		return reconcile.Result{}, nil
	}
	p, err := l.begin(obj)
	if err != nil {
		return reconcile.Result{}, err
	}
	p.stage, p.policy, p.err = stage, f.policy, askErr
	return p.run(context.WithValue(ctx, policyKey{}, f.policy))
}

// factsOf asks the handler and the annotations. The facts are usable even if there is
// an error: then somebody did not tell, and nothing is to be done but to report that.
func (l *Loop[T]) factsOf(ctx context.Context, obj T) (facts, error) {
	f := facts{
		elsewhere: l.isElsewhere(obj),
		deleting:  !obj.GetDeletionTimestamp().IsZero(),
		claimed:   hasFinalizer(obj, l.options.Finalizer),
	}
	if stageOf(f) == StageIgnore {
		return f, nil
	}
	err := contain(func() error {
		if s, ok := l.handler.(Suspender[T]); ok {
			f.suspended = s.Suspended(obj)
		}
		if d, ok := l.handler.(Detacher[T]); ok {
			f.detached = d.Detached(obj)
		}
		return nil
	})
	if err == nil && f.deleting && f.detached {
		// What the policy is does not matter any more.
		return f, nil
	}
	policy, policyErr := l.policyOf(ctx, obj)
	f.policy = policy
	if stageOf(f) == StageRelease {
		// To leave everything behind, the handler is not needed.
		return f, nil
	}
	if err == nil {
		return f, policyErr
	}
	return f, errors.Join(err, policyErr)
}

func (l *Loop[T]) begin(obj T) (*pass[T], error) {
	options := []patch.HelperOption{patch.WithReader(l.options.Reader), patch.WithFieldOwner(l.options.FieldOwner)}
	if !l.options.PersistSpec {
		options = append(options, patch.WithoutSpec())
	}
	patcher, err := patch.NewHelper(obj, l.options.Client, options...)
	if err != nil {
		return nil, err
	}
	return &pass[T]{Loop: l, obj: obj, key: client.ObjectKeyFromObject(obj), patcher: patcher}, nil
}

// unserved comes again for an object about which the server said nothing but 404: the
// path of its type is not served, for a moment or, if its definition was deleted, for
// good. The former must not end the passes over an object that is there; the latter
// must not cost more and more often than little.
func (l *Loop[T]) unserved(ctx context.Context, key client.ObjectKey, err error) reconcile.Result {
	after := l.absences.Next(key)
	logf.FromContext(ctx).Info("the type of the object is not served; coming again", "error", err.Error(), "after", after)
	return reconcile.Result{RequeueAfter: after}
}

// finished forgets an object that is gone.
func (l *Loop[T]) finished(ctx context.Context, key client.ObjectKey) {
	l.told.Delete(key)
	l.absences.Forget(key)
	l.letGo(ctx, key)
}

// letGo forgets what would be done about an object next: nothing is.
func (l *Loop[T]) letGo(ctx context.Context, key client.ObjectKey) {
	l.activity.Forget(key)
	l.outdated.Forget(key)
	l.attempts.forget(key)
	if l.options.RateLimiter != nil {
		l.options.RateLimiter.Forget(reconcile.Request{NamespacedName: key})
	}
	finisher, ok := l.handler.(Finisher)
	if !ok {
		return
	}
	err := contain(func() error {
		finisher.Finished(ctx, key)
		return nil
	})
	if err != nil {
		logPanic(ctx, err)
	}
}

func logPanic(ctx context.Context, err error) {
	if p, ok := errors.AsType[*PanicError](err); ok {
		logf.FromContext(ctx).Error(p, "contained a panic", "stack", string(p.Stack))
	}
}
