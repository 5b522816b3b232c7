// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
)

// exitTimeout bounds the last write of a pass. It does not depend on the context
// of the pass, so that a shutdown does not lose what was done.
const exitTimeout = 15 * time.Second

// outdatedBase and outdatedLimit are how soon an object whose definition is outdated is
// tried again, at first and later. A new definition causes no event for the object, and
// operators are often rolled out before their definitions.
const (
	outdatedBase  = 5 * time.Second
	outdatedLimit = 15 * time.Second
)

// finish judges the pass and writes the outcome.
func (p *pass[T]) finish(ctx context.Context) (reconcile.Result, error) {
	refused := outdated(p.refused) && outdated(p.err)
	if refused {
		p.err = result.NewStalling(p.err, v1alpha1.ReasonCRDOutdated)
	}
	conditions, res, err := p.judge(ctx)
	builder := p.builder()
	options := []summarize.Option{
		summarize.WithReconcileResult(res),
		summarize.WithReconcileError(err),
		summarize.WithResultBuilder(builder),
		summarize.WithConditions(conditions...),
		summarize.WithIgnoreNotFound(),
		summarize.WithTransitionEvents(),
		summarize.WithClock(p.options.Clock),
	}
	if p.options.ObservedGenerationAlways {
		options = append(options, summarize.WithObservedGenerationAlways())
	}
	exit, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	helper := summarize.NewHelper(p.options.Recorder, p.patcher)
	out, outErr := helper.SummarizeAndPatch(exit, p.options.Conditions(p.obj), options...)
	if outdated(outErr) && result.Compute(res, err, builder).Err == nil {
		return p.reportOutdated(ctx, outErr), nil
	}
	out = p.pace(out, res, err)
	if refused {
		out.RequeueAfter = p.outdated.Next(p.key)
	} else {
		p.outdated.Reset(p.key)
	}
	return out, outErr
}

// abandon is for a pass that was cut off because the process stops: what it has
// recorded so far is kept, but that it was cut off is nobody's fault and no status.
func (p *pass[T]) abandon(ctx context.Context) (reconcile.Result, error) {
	exit, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	if err := p.patcher.Patch(exit, p.obj); err != nil && !errors.Is(err, patch.ErrConflict) {
		return reconcile.Result{}, errors.Join(p.err, err)
	}
	return reconcile.Result{}, p.err
}

// reportOutdated is for a definition that may not even hold the complaint about
// itself: then the log and an event have to do.
func (p *pass[T]) reportOutdated(ctx context.Context, err error) reconcile.Result {
	delay := p.outdated.Next(p.key)
	if delay > outdatedBase {
		return reconcile.Result{RequeueAfter: delay} // it is reported already
	}
	logf.FromContext(ctx).Error(err, "the CustomResourceDefinition is outdated")
	before := p.patcher.OriginalCondition(v1alpha1.ConditionStalled)
	known := before != nil && before.Reason == v1alpha1.ReasonCRDOutdated
	if p.options.Recorder != nil && !known {
		p.options.Recorder.Eventf(p.obj, nil, corev1.EventTypeWarning, v1alpha1.ReasonCRDOutdated, "Reconcile", "%s", shortNote(err))
	}
	return reconcile.Result{RequeueAfter: delay}
}

// shortNote keeps to the API server's limit for the note of an event.
func shortNote(err error) string {
	note := []rune(err.Error())
	return string(note[:min(len(note), 250)]) // at most 4 bytes each
}

// outdated tells whether the CustomResourceDefinition does not keep our status.
func outdated(err error) bool {
	if _, pruned := errors.AsType[*patch.PrunedError](err); pruned {
		return true
	}
	_, missing := errors.AsType[*patch.NoStatusSubresourceError](err)
	return missing
}

// builder asks the handler when the object comes again.
func (p *pass[T]) builder() result.RuntimeResultBuilder {
	var builder result.RuntimeResultBuilder
	if b, ok := p.handler.(Builder[T]); ok {
		// A panic here leaves the default; the pass has its outcome already.
		_ = contain(func() error {
			builder = b.ResultBuilder(p.obj)
			return nil
		})
	}
	if builder == nil {
		return result.AlwaysRequeueResultBuilder{RequeueAfter: p.options.early(p.options.RequeueInterval)}
	}
	return builder
}
