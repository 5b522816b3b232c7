// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/pkg/types"
)

// exitTimeout bounds the last write of a reconcile. It does not depend on the context
// of the reconcile, so that a shutdown does not lose what was done.
//
// Limit: the time for which the status of a reconcile is still written when the operator stops.
const exitTimeout = 15 * time.Second

// outdatedBase and outdatedLimit are the first and the longest delay before an object with an
// outdated definition is tried again. A new definition causes no event for the object, and
// operators are often rolled out before their definitions.
const (
	outdatedBase  = 5 * time.Second
	outdatedLimit = 15 * time.Second
)

// standard are the conditions of a handler that does not word its own.
var standard = summarize.Conditions{
	Target: v1alpha1.ConditionReady,
	Owned:  []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled},
}

// Outcome is what happened in a reconcile.
type Outcome struct {
	// Phase is what the reconcile was about.
	Phase Phase
	// Policy is the management policy that applied, or empty if it was not found out.
	Policy v1alpha1.ManagementPolicy
	// Result and Err are what came out. A panic is a types.PanicError. An
	// outdated CustomResourceDefinition is a result.Stalling with the reason CRDOutdated.
	Result result.Result
	Err    error
}

// Close ends a session: it writes the status, once, and returns when the object is
// reconciled again. The function assess sets the conditions of the object and returns the verdict,
// which counts as it is. Nil, and one that panics, means the standard conditions, and a verdict
// that follows from result and error.
//
// A session ends quietly, with nothing assessed and nothing written, if another process may
// lead, or if the object changed or was deleted meanwhile.
func (p *Session[T]) Close(ctx context.Context, assess func(Outcome) result.Verdict) (out reconcile.Result, err error) {
	if p.ended {
		return p.requeue, nil
	}
	panicked := contain(func() error {
		out, err = p.close(ctx, assess)
		return nil
	})
	if panicked != nil {
		return reconcile.Result{}, p.sessions.panicked(ctx, p.key, panicked)
	}
	return out, err
}

func (p *Session[T]) close(ctx context.Context, assess func(Outcome) result.Verdict) (reconcile.Result, error) {
	logPanic(ctx, p.err)
	if err := p.sessions.leading(); err != nil {
		p.err = errors.Join(p.err, err)
	}
	if why, ok := errors.AsType[*result.RequeueError](p.err); ok {
		return requeueLater(ctx, why), nil
	}
	switch {
	case errors.Is(p.refused, patch.ErrConflict) && errors.Is(p.err, patch.ErrConflict):
		return p.requeueChanged(ctx), nil
	case p.aboutItself(metav1.StatusReasonConflict):
		return p.requeueChanged(ctx), nil
	case p.aboutItself(metav1.StatusReasonNotFound):
		logf.FromContext(ctx).V(1).Info("the object was deleted during the reconcile", "answer", p.err.Error())
		return reconcile.Result{}, nil
	case errors.Is(ctx.Err(), context.Canceled) && errors.Is(p.err, context.Canceled):
		return p.cutOff(ctx)
	}
	return p.summarize(ctx, assess)
}

// summarize assesses the reconcile and writes the status.
func (p *Session[T]) summarize(ctx context.Context, assess func(Outcome) result.Verdict) (reconcile.Result, error) {
	refused := outdated(p.refused) && outdated(p.err)
	if refused {
		p.err = result.NewStalling(p.err, vocabulary.ReasonCRDOutdated)
	}
	options := p.sessions.Options
	summary := []summarize.Option{summarize.WithIgnoreNotFound(), summarize.WithTransitionEvents()}
	if options.ObservedGenerationAlways {
		summary = append(summary, summarize.WithObservedGenerationAlways())
	}
	verdict, assessed := p.verdict(ctx, assess)
	if assessed {
		summary = append(summary, summarize.WithVerdict(verdict))
	} else {
		verdict = p.defaultVerdict()
		summary = append(summary, summarize.WithConditions(standard), summarize.WithReconcileResult(p.result),
			summarize.WithReconcileError(p.err), summarize.WithResultBuilder(p.builder()))
	}
	exit, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	out, err := summarize.NewHelper(options.Recorder, p.patcher).SummarizeAndPatch(exit, options.Conditions(p.Object), summary...)
	if err == nil {
		p.known.claiming = ""
	}
	if refusal := p.patcher.Refused(); refusal != nil && !outdated(refusal) {
		p.sessions.sendOnce(p.Object, corev1.EventTypeWarning, reasonWriteRefused, actionReconcile, refusal.Error())
	}
	if outdated(err) && verdict.Err == nil {
		return p.reportOutdated(ctx, err), nil
	}
	if assessed {
		p.known.idle.Reset()
	} else {
		out = p.requeueAfter(out)
	}
	if refused {
		out.RequeueAfter = p.known.outdated.Next(outdatedBase, outdatedLimit)
	} else {
		p.known.outdated.Reset()
	}
	return out, err
}

// verdict calls the function of the caller that assesses the outcome, if there is one. If it
// panics, that is the outcome.
func (p *Session[T]) verdict(ctx context.Context, assess func(Outcome) result.Verdict) (verdict result.Verdict, assessed bool) {
	if assess == nil {
		return verdict, false
	}
	err := contain(func() error {
		verdict = assess(Outcome{Phase: p.Phase, Policy: p.Policy, Result: p.result, Err: p.err})
		return nil
	})
	if err == nil {
		return verdict, true
	}
	logPanic(ctx, err)
	p.result, p.err = result.Empty, err
	return verdict, false
}

func (p *Session[T]) builder() result.RuntimeResultBuilder {
	return result.AlwaysRequeueResultBuilder{RequeueAfter: p.sessions.Options.early(p.sessions.Options.RequeueInterval)}
}

// defaultVerdict computes the verdict from result and error, and sets Reconciling as long as
// more work is to come. Ready itself follows from the summary.
func (p *Session[T]) defaultVerdict() result.Verdict {
	obj := p.sessions.Options.Conditions(p.Object)
	acted := p.Phase == PhaseClaim || p.Phase == PhaseApply
	if acted && p.err == nil && p.result == result.Empty && !conditions.IsTrue(obj, v1alpha1.ConditionReady) {
		// Nothing was to be done and nothing is to come. What Ready says is of an earlier reconcile.
		p.result = result.Success
	}
	verdict := result.Compute(p.result, p.err, p.builder())
	switch {
	case p.Phase == PhaseSkip && p.err == nil:
		message := "suspended: nothing is created or updated"
		if p.Policy == v1alpha1.ManagementPolicySkip {
			message = "the management policy is skip: nothing is created, updated or deleted"
		}
		conditions.Delete(obj, v1alpha1.ConditionReconciling)
		conditions.MarkUnknown(obj, v1alpha1.ConditionReady, vocabulary.ReasonSuspended, "%s", message)
	case verdict.Outcome == result.Requeued, verdict.Outcome == result.Waited, verdict.Outcome == result.Failed:
		conditions.MarkReconciling(obj, verdict.Reason, "%s", cmp.Or(verdict.Message, "work goes on"))
	}
	return verdict
}

// cutOff is for a reconcile that was cut off because the process stops: what it has
// recorded so far is kept, but that it was cut off is no status.
func (p *Session[T]) cutOff(ctx context.Context) (reconcile.Result, error) {
	exit, cancel := context.WithTimeout(context.WithoutCancel(ctx), exitTimeout)
	defer cancel()
	if err := p.patcher.Patch(exit, p.Object); err != nil && !errors.Is(err, patch.ErrConflict) {
		return reconcile.Result{}, errors.Join(p.err, err)
	}
	return reconcile.Result{}, p.err
}

// requeueChanged ends the reconcile without a status: the object has changed since it was read.
func (p *Session[T]) requeueChanged(ctx context.Context) reconcile.Result {
	delay := p.known.idle.Idle()
	logf.FromContext(ctx).V(1).Info("the object changed during the reconcile; it is requeued", "conflict", p.err.Error(), "after", delay)
	return reconcile.Result{RequeueAfter: delay}
}

// reportOutdated is for a definition that may not even hold the complaint about
// itself: then the log and an event have to do.
func (p *Session[T]) reportOutdated(ctx context.Context, err error) reconcile.Result {
	delay := p.known.outdated.Next(outdatedBase, outdatedLimit)
	if delay > outdatedBase {
		return reconcile.Result{RequeueAfter: delay} // it is reported already
	}
	logf.FromContext(ctx).Error(err, "the CustomResourceDefinition is outdated")
	before := p.patcher.OriginalCondition(v1alpha1.ConditionStalled)
	known := before != nil && before.Reason == vocabulary.ReasonCRDOutdated
	if p.sessions.Options.Recorder != nil && !known {
		p.sessions.Options.Recorder.Eventf(p.Object, nil, corev1.EventTypeWarning, vocabulary.ReasonCRDOutdated, actionReconcile, "%s", err.Error())
	}
	return reconcile.Result{RequeueAfter: delay}
}

// outdated reports whether the CustomResourceDefinition does not keep our status.
func outdated(err error) bool {
	if _, pruned := errors.AsType[*patch.PrunedError](err); pruned {
		return true
	}
	if _, missing := errors.AsType[*patch.NoStatusSubresourceError](err); missing {
		return true
	}
	// The definition of an earlier version lists fewer states.
	answer, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && apierrors.IsInvalid(answer) && answer.ErrStatus.Details != nil &&
		slices.ContainsFunc(answer.ErrStatus.Details.Causes, func(cause metav1.StatusCause) bool { return cause.Field == "status.state" })
}

// aboutItself reports whether the error is the answer of the server that the object of
// the reconcile itself has changed or is gone. The error does not count if
// the handler joined it with another one or gave it a meaning.
func (p *Session[T]) aboutItself(reason metav1.StatusReason) bool {
	for e := p.err; e != nil; e = errors.Unwrap(e) {
		switch answer := e.(type) {
		case *result.Error, *result.Stalling, *result.Waiting, *result.Generic, types.RetriableError, *types.RetriableError:
			return false
		case *apierrors.StatusError:
			details := answer.ErrStatus.Details
			if answer.ErrStatus.Reason != reason || details == nil || details.Name != p.key.Name {
				return false
			}
			if reason == metav1.StatusReasonNotFound && !types.IsGone(answer, p.key.Name) {
				return false // the path of the type is not served
			}
			gvk, err := p.sessions.Options.Client.GroupVersionKindFor(p.Object)
			if err != nil || details.Group != gvk.Group {
				return false
			}
			if plural, _ := apimeta.UnsafeGuessKindToResource(gvk); details.Kind == plural.Resource {
				return true
			}
			mapping, err := p.sessions.Options.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
			return err == nil && details.Kind == mapping.Resource.Resource
		}
	}
	return false
}
