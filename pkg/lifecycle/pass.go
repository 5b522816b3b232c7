// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// pass is one run over one object.
type pass[T client.Object] struct {
	*Loop[T]
	obj     T
	key     client.ObjectKey
	patcher *patch.Helper
	stage   Stage
	policy  ManagementPolicy
	result  result.Result
	err     error
	// refused is the error of our own last write that was refused. Only with it do the
	// errors of a pass mean what patch says they mean: a handler may write other objects, too.
	refused error
}

func (p *pass[T]) run(ctx context.Context) (reconcile.Result, error) {
	leaving := p.stage == StageRelease
	if p.err == nil {
		p.result, p.err = p.act(ctx)
		if p.stage == StageDelete && p.err == nil {
			switch p.result {
			case result.Success:
				p.stage = StageRelease
			case result.Empty:
				// Only Success ends a deletion; without it, it goes on.
				p.result = result.Requeue
			}
		}
		if p.stage == StageRelease {
			// What came out before does not matter: nothing is left to be done.
			p.result, p.err = result.Empty, p.release(ctx, leaving)
			if p.err == nil {
				return reconcile.Result{}, nil
			}
		}
	}
	logPanic(ctx, p.err)
	if err := p.leading(); err != nil {
		p.err = errors.Join(p.err, err)
	}
	if why, ok := errors.AsType[*LaterError](p.err); ok {
		return later(ctx, why), nil
	}
	switch {
	case errors.Is(p.refused, patch.ErrConflict) && errors.Is(p.err, patch.ErrConflict):
		return p.again(ctx), nil
	case p.aboutItself(metav1.StatusReasonConflict):
		return p.again(ctx), nil
	case p.aboutItself(metav1.StatusReasonNotFound):
		logf.FromContext(ctx).V(1).Info("the object was deleted during the reconcile", "answer", p.err.Error())
		return reconcile.Result{}, nil
	case errors.Is(ctx.Err(), context.Canceled) && errors.Is(p.err, context.Canceled):
		return p.abandon(ctx)
	}
	return p.finish(ctx)
}

// act lets the handler do what the stage asks for.
func (p *pass[T]) act(ctx context.Context) (res result.Result, err error) {
	err = contain(func() error {
		switch p.stage {
		case StageSkip:
			return p.handler.UpdateStatus(ctx, p.obj)
		case StageClaim, StageApply:
			if err := p.claim(ctx); err != nil {
				return err
			}
			var err error
			res, err = p.handler.CreateOrUpdate(ctx, p.obj, p.commit)
			return err
		case StageDelete:
			p.tellOnce(p.obj, "", reasonBeginDelete, actionDelete, "the deletion begins")
			var err error
			res, err = p.handler.Delete(ctx, p.obj, p.commit)
			return err
		default:
			return nil
		}
	})
	return res, err
}

func (p *pass[T]) commit(ctx context.Context) error {
	if err := p.leading(); err != nil {
		return err
	}
	return p.note(p.patcher.Commit(ctx, p.obj))
}

// note remembers the error of a write of our own.
func (p *pass[T]) note(err error) error {
	if err != nil {
		p.refused = err
	}
	return err
}

// claim runs in every pass, because a handler may have to claim more than it did
// when the object was new.
func (p *pass[T]) claim(ctx context.Context) error {
	if err := p.handler.Claim(ctx, p.obj); err != nil {
		return err
	}
	// The finalizer goes first: if we crashed after the first side effect without
	// it, a deleted object would leave behind what was made for it.
	controllerutil.AddFinalizer(p.obj, p.options.Finalizer)
	p.own(p.obj)
	changed, err := p.patcher.MetadataChanged(p.obj)
	if err != nil || !changed {
		return err
	}
	return p.commit(ctx)
}

// release removes the finalizer in one write. The status stays as it is: usually
// the object is gone after this. Leaving means that what was made stays.
func (p *pass[T]) release(ctx context.Context, leaving bool) error {
	if err := p.leading(); err != nil {
		return err
	}
	if releaser, ok := p.handler.(Releaser[T]); ok {
		if err := contain(func() error { return releaser.Release(ctx, p.obj) }); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(p.obj, p.options.Finalizer)
	if err := p.note(p.patcher.PatchMetadata(ctx, p.obj)); err != nil {
		return err
	}
	if leaving {
		p.tellOnce(p.obj, "", reasonDetached, actionDelete, "what was made for the object is left behind")
	}
	if len(p.obj.GetFinalizers()) == 0 {
		p.finished(ctx, p.key)
	}
	return nil
}

// aboutItself reports whether the error is the answer of the server that the object of
// the reconcile itself has changed or is gone. What the handler joined or gave a meaning is
// the handler's to judge.
func (p *pass[T]) aboutItself(reason metav1.StatusReason) bool {
	for e := p.err; e != nil; e = errors.Unwrap(e) {
		switch answer := e.(type) {
		case *Error, *result.Stalling, *result.Waiting, *result.Generic, types.RetriableError, *types.RetriableError:
			return false
		case *apierrors.StatusError:
			details := answer.ErrStatus.Details
			if answer.ErrStatus.Reason != reason || details == nil || details.Name != p.key.Name {
				return false
			}
			if reason == metav1.StatusReasonNotFound && !cluster.IsGone(answer, p.key.Name) {
				return false // the path of the type is not served
			}
			gvk, err := p.options.Client.GroupVersionKindFor(p.obj)
			if err != nil || details.Group != gvk.Group {
				return false
			}
			if plural, _ := apimeta.UnsafeGuessKindToResource(gvk); details.Kind == plural.Resource {
				return true
			}
			mapping, err := p.options.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
			return err == nil && details.Kind == mapping.Resource.Resource
		}
	}
	return false
}

// again ends the pass quietly: what it was about is no longer so.
func (p *pass[T]) again(ctx context.Context) reconcile.Result {
	delay := p.activity.Next(p.key)
	logf.FromContext(ctx).V(1).Info("the object changed during the pass; coming again", "conflict", p.err.Error(), "after", delay)
	return reconcile.Result{RequeueAfter: delay}
}

func hasFinalizer(obj client.Object, finalizer string) bool {
	return slices.Contains(obj.GetFinalizers(), finalizer)
}
