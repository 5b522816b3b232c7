// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/types"
)

// resyncJitter is the part of an interval that is added at random.
const resyncJitter = 0.1

// runner makes the reconciles of a controller.
type runner struct {
	reconciler Reconciler
	policy     RetryPolicy
	interval   time.Duration // of resyncs; 0 for none
	finalizers *finalizerWriter
	memory     *memory
	limiter    *limiter
	// writeDelays are the delays after our own writes that were refused.
	writeDelays workqueue.TypedRateLimiter[client.ObjectKey]
	gaveUp      func(obj client.Object, action ReconcileAction) // informs users
	now         func() time.Time
	random      func() float64
}

var _ reconcile.Reconciler = (*runner)(nil)

// Reconcile makes one step for each object of the name: for a deleted object, and for its
// successor.
func (r *runner) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	key := request.NamespacedName
	for {
		s, ok := r.memory.next(key, r.now())
		if !ok {
			r.writeDelays.Forget(key)
			return reconcile.Result{}, nil
		}
		result, done, err := r.reconcileOne(ctx, key, s)
		if err != nil || !done {
			return result, err
		}
		if !s.absent {
			return r.untilResync(s), nil
		}
		r.memory.forgetDeleted(s)
	}
}

// reconcileOne makes the step for a subject. It is done when nothing of it is left to do.
func (r *runner) reconcileOne(ctx context.Context, key client.ObjectKey, s subject) (result reconcile.Result, done bool, err error) {
	next := classify(s.facts)
	obj := s.object.DeepCopyObject().(client.Object)
	if next.add != addNothing {
		finalizers := []string{r.finalizers.finalizer}
		if next.add == addBoth {
			finalizers = append(finalizers, r.finalizers.pendingFinalizer())
		}
		// The object gets the state of the server after the write.
		if err := r.finalizers.add(ctx, obj, finalizers...); err != nil {
			result, err = r.writeFailed(ctx, key, err)
			return result, false, err
		}
	}
	if next.action != ReconcileActionUnknown {
		if result, done, err = r.call(ctx, key, s, next.action, obj); !done {
			return result, false, err
		}
	}
	// A copy, because the handled state must not look newer than it was.
	if err := r.removeFinalizers(ctx, s, next.remove, obj.DeepCopyObject().(client.Object)); err != nil {
		result, err = r.writeFailed(ctx, key, err)
		return result, false, err
	}
	r.writeDelays.Forget(key)
	return reconcile.Result{}, true, nil
}

// removeFinalizers removes our finalizers.
func (r *runner) removeFinalizers(ctx context.Context, s subject, what removal, obj client.Object) error {
	switch what {
	case removePending:
		after, err := r.finalizers.remove(ctx, obj, r.finalizers.pendingFinalizer())
		if err == nil {
			r.memory.notePendingRemoved(s, after)
		}
		return err
	case removeBoth:
		if s.absent {
			there, err := r.finalizers.find(ctx, obj)
			if err != nil || there == nil {
				return err
			}
			obj = there
		}
		after, err := r.finalizers.remove(ctx, obj, r.finalizers.finalizer, r.finalizers.pendingFinalizer())
		if err == nil {
			r.memory.noteFinalizersRemoved(s, after)
		}
		return err
	default:
		return nil
	}
}

// call calls the reconciler and notes the result. Done means that it succeeded.
func (r *runner) call(ctx context.Context, key client.ObjectKey, s subject, action ReconcileAction, obj client.Object) (result reconcile.Result, done bool, err error) {
	ctx = logf.IntoContext(ctx, logf.FromContext(ctx).WithValues("action", action))
	request := ReconcileRequest{Action: action, Object: obj.DeepCopyObject().(client.Object), State: s.state}
	if action == ReconcileActionUpdated {
		request.Old = s.old.DeepCopyObject().(client.Object)
	}
	r.memory.noteCall(s, action)
	out, err := callGuarded(func() (ReconcileResult, error) { return r.reconciler.Reconcile(ctx, request) })
	switch {
	case err != nil:
		result, err = r.failed(key, s, action, obj, out, err)
		return result, false, err
	case out.RequeueAfter > 0:
		r.memory.noteRetry(s, 0, out.State) // to poll is no failure
		return reconcile.Result{RequeueAfter: out.RequeueAfter}, false, nil
	}
	r.memory.noteSuccess(s, action, obj, r.nextResync())
	return reconcile.Result{}, true, nil
}

// failed decides about the next attempt. The controller is to forget an object only if that is the
// decision: any other returned error is not terminal.
func (r *runner) failed(key client.ObjectKey, s subject, action ReconcileAction, obj client.Object, out ReconcileResult, err error) (reconcile.Result, error) {
	terminal := errors.Is(err, reconcile.TerminalError(nil))
	err = backoff.Retried(fmt.Errorf("%s %s %s: %w", action, r.finalizers.kind, key, err))
	retry, after := true, out.RequeueAfter
	switch {
	case after > 0:
	case terminal:
		retry = false
	default:
		retry, after = r.policy(err, s.count)
		after = backoff.Jitter(after, resyncJitter, r.random())
	}
	if retry {
		r.memory.noteRetry(s, s.count+1, out.State)
		r.limiter.set(key, after)
		return reconcile.Result{}, err
	}
	if !s.absent {
		r.gaveUp(s.object, action)
	}
	due := r.nextResync()
	switch {
	case s.followed:
		// Another object waits under the name. It is not to wait until it changes.
		r.memory.forgetDeleted(s)
		r.limiter.set(key, writeRetryInitial)
		return reconcile.Result{}, err
	case due.IsZero():
		r.memory.noteGaveUp(s, obj, due)
		if s.absent {
			r.memory.forgetDeleted(s)
		}
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	r.memory.noteGaveUp(s, obj, due)
	r.limiter.set(key, due.Sub(r.now()))
	return reconcile.Result{}, err
}

// writeFailed requeues the object after one of our own writes was refused.
func (r *runner) writeFailed(ctx context.Context, key client.ObjectKey, err error) (reconcile.Result, error) {
	delay := r.writeDelays.When(key)
	// Invalid is also the answer if another client moved our finalizers in the list. Then it does
	// not last.
	moved := apierrors.IsInvalid(err) && delay < time.Second
	if apierrors.IsConflict(err) || types.IsGone(err, key.Name) || moved {
		// The cache will show its new state.
		logf.FromContext(ctx).V(1).Info("the object changed meanwhile; it is requeued", "after", delay, "conflict", err.Error())
		return reconcile.Result{RequeueAfter: delay}, nil
	}
	r.limiter.set(key, delay)
	return reconcile.Result{}, err
}

func (r *runner) nextResync() time.Time {
	if r.interval <= 0 {
		return time.Time{}
	}
	return r.now().Add(backoff.Jitter(r.interval, resyncJitter, r.random()))
}

// untilResync is the result of a reconcile that left nothing to do. An event replaces
// of a delay in the queue, so each reconcile has to ask for it.
func (r *runner) untilResync(s subject) reconcile.Result {
	due := r.memory.due(client.ObjectKeyFromObject(s.object))
	if due.IsZero() {
		return reconcile.Result{}
	}
	return reconcile.Result{RequeueAfter: max(due.Sub(r.now()), time.Millisecond)}
}

// callGuarded calls f and makes a *types.PanicError of a panic.
func callGuarded(f func() (ReconcileResult, error)) (out ReconcileResult, err error) {
	err = guard.CallNamed("the reconciler", func() (err error) {
		out, err = f()
		return err
	})
	return out, err
}

// guardedChanged makes a panic of the function mean that a change counts: it is called where
// a panic would end the process.
func guardedChanged(changed func(oldObj, newObj client.Object) bool) func(oldObj, newObj client.Object) bool {
	return func(oldObj, newObj client.Object) (counts bool) {
		err := guard.Call(func() error { counts = changed(oldObj, newObj); return nil })
		guard.Log(logf.Log.WithName("changes"), err, "option Changed")
		return counts || err != nil
	}
}
