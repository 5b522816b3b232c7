// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
)

// Helper ends reconciles of one object.
type Helper struct {
	recorder Recorder
	patcher  *patch.Helper
}

// NewHelper returns a Helper. The recorder may be nil; the patch helper was made when the object
// had been read.
func NewHelper(recorder Recorder, patchHelper *patch.Helper) *Helper {
	return &Helper{recorder: recorder, patcher: patchHelper}
}

// SummarizeAndPatch ends the reconcile, see the package. The result and the error are for Reconcile
// to return. When the object on the server is no longer the object of the reconcile, nothing is
// written, and instead of an error there is a short delay: the next reconcile finds out.
func (h *Helper) SummarizeAndPatch(ctx context.Context, obj conditions.Setter, options ...Option) (ctrl.Result, error) {
	if h.patcher == nil {
		return ctrl.Result{}, errors.New("a summarize helper needs a patch helper")
	}
	var o helperOptions
	for _, option := range options {
		option(&o)
	}
	for _, processor := range o.Processors {
		processor(ctx, h.recorder, conditions.ObjectOf(obj), o.ReconcileResult, o.ReconcileError)
	}
	verdict, patchOptions := h.summarize(obj, o)

	deleting := !obj.GetDeletionTimestamp().IsZero()
	err := h.patcher.Patch(ctx, obj, patchOptions...)
	switch {
	case err == nil:
		if o.TransitionEvents && !verdict.Announced {
			h.recordTransition(obj)
		}
	case o.IgnoreNotFound && deleting && apierrors.IsNotFound(err):
	case errors.Is(err, patch.ErrConflict):
		logf.FromContext(ctx).V(1).Info("the object changed during the reconcile; it is requeued", "conflict", err.Error())
		if verdict.Err == nil {
			return ctrl.Result{RequeueAfter: result.RequeueDelay}, nil
		}
	default:
		// The controller ignores the result next to an error.
		return ctrl.Result{}, errors.Join(verdict.Err, fmt.Errorf("write the outcome: %w", err))
	}
	return verdict.Result, verdict.Err
}

// ComputeReconcileResult computes the return values of a reconcile, and brings Reconciling and
// Stalled of the object in line with it. The options are for writing the object.
//
// Reconciling is never added here: the code that finds a difference does that, and
// SummarizeAndPatch where Ready becomes Unknown. It is removed on success and when stalled,
// and else it stays.
func ComputeReconcileResult(obj conditions.Setter, res result.Result, err error, builder result.RuntimeResultBuilder) ([]patch.Option, ctrl.Result, error) {
	verdict := result.Compute(res, err, builder)
	applyVerdict(obj, verdict)
	var options []patch.Option
	if verdict.Observed {
		options = append(options, patch.WithStatusObservedGeneration{})
	}
	return options, verdict.Result, verdict.Err
}

func applyVerdict(obj conditions.Setter, verdict result.Verdict) {
	if verdict.Reconciling == result.Remove {
		conditions.Delete(obj, v1alpha1.ConditionReconciling)
	}
	switch verdict.Stalled {
	case result.Mark:
		conditions.MarkStalled(obj, verdict.Reason, "%s", verdict.Message)
	case result.Remove:
		conditions.Delete(obj, v1alpha1.ConditionStalled)
	}
}

// summarize sets the conditions that follow from the result.
func (h *Helper) summarize(obj conditions.Setter, o helperOptions) (result.Verdict, []patch.Option) {
	var owned []string
	for _, c := range o.Conditions {
		owned = append(owned, c.Owned...)
	}
	options := []patch.Option{patch.WithOwnedConditions{Conditions: owned}}
	var verdict result.Verdict
	switch {
	case o.Verdict != nil:
		verdict = *o.Verdict
		applyVerdict(obj, verdict)
	case o.ResultBuilder != nil:
		verdict = result.Compute(o.ReconcileResult, o.ReconcileError, o.ResultBuilder)
		if verdict.Outcome == result.Succeeded {
			if err := contradiction(obj, o); err != nil {
				verdict = result.Compute(o.ReconcileResult, err, o.ResultBuilder)
			}
		}
		applyVerdict(obj, verdict)
	}
	if o.ObservedGenerationAlways || verdict.Observed {
		options = append(options, patch.WithStatusObservedGeneration{})
	}
	// The summaries come after the verdict: they may summarise Reconciling and Stalled.
	for _, c := range o.Conditions {
		summarized := len(c.Summarize) > 0 && conditions.SetSummary(obj, c.Target,
			conditions.WithConditions(c.Summarize...),
			conditions.WithNegativePolarityConditions(c.NegativePolarity...))
		if c.Target != v1alpha1.ConditionReady {
			continue
		}
		if bad := firstFalse(obj, o.BiPolarity); bad != nil {
			conditions.MarkFalse(obj, c.Target, bad.Reason, "%s", bad.Message)
			summarized = true
		}
		setReady(obj, verdict, summarized)
	}
	return verdict, options
}

// contradiction returns the bad news about a reconcile that reports success, or nil. Reconciling
// and Stalled do not count: the success is about to remove them.
func contradiction(obj conditions.Getter, o helperOptions) error {
	for _, c := range o.Conditions {
		if c.Target != v1alpha1.ConditionReady {
			continue
		}
		bad := firstFalse(obj, o.BiPolarity)
		var types []string
		for _, conditionType := range c.Summarize {
			if conditionType != v1alpha1.ConditionReconciling && conditionType != v1alpha1.ConditionStalled {
				types = append(types, conditionType)
			}
		}
		if bad == nil && len(types) > 0 {
			bad = conditions.Summary(obj, c.Target, conditions.WithConditions(types...),
				conditions.WithNegativePolarityConditions(c.NegativePolarity...))
		}
		if bad != nil && bad.Status == metav1.ConditionFalse {
			return result.NewGeneric(errors.New(cmp.Or(bad.Message, bad.Reason)), bad.Reason)
		}
	}
	return nil
}

// firstFalse returns the first of the conditions that is False, or nil.
func firstFalse(obj conditions.Getter, types []string) *metav1.Condition {
	for _, conditionType := range types {
		if conditions.IsFalse(obj, conditionType) {
			return conditions.Get(obj, conditionType)
		}
	}
	return nil
}

// messages are for Ready without an error.
var messages = map[result.Outcome]string{
	result.Succeeded: "everything is as it should be",
	result.Ignored:   "nothing to do",
	result.Requeued:  "work goes on",
}

// setReady makes Ready agree with the verdict. Conditions that were summarised count if they are
// worse; they may be left over from an earlier reconcile, so a Ready that is True after a failure
// does not count.
func setReady(obj conditions.Setter, verdict result.Verdict, summarized bool) {
	switch verdict.Outcome {
	case result.Succeeded, result.Ignored:
		if !summarized {
			conditions.MarkTrue(obj, v1alpha1.ConditionReady, vocabulary.ReasonReady, "%s", messages[verdict.Outcome])
		}
	case result.Failed, result.Stalled:
		if !summarized || !conditions.IsFalse(obj, v1alpha1.ConditionReady) {
			conditions.MarkFalse(obj, v1alpha1.ConditionReady, verdict.Reason, "%s", verdict.Message)
		}
	case result.Waited, result.Requeued:
		if !summarized || conditions.IsTrue(obj, v1alpha1.ConditionReady) {
			conditions.MarkUnknown(obj, v1alpha1.ConditionReady, verdict.Reason, "%s", cmp.Or(verdict.Message, messages[verdict.Outcome]))
		}
	}
	explainUnknown(obj)
}

// explainUnknown adds Reconciling where Ready is Unknown: kstatus takes an object without
// Reconciling as current.
func explainUnknown(obj conditions.Setter) {
	ready := conditions.Get(obj, v1alpha1.ConditionReady)
	if ready == nil || ready.Status != metav1.ConditionUnknown || ready.Reason == vocabulary.ReasonSuspended {
		return
	}
	if !conditions.IsReconciling(obj) && !conditions.IsStalled(obj) {
		conditions.MarkReconciling(obj, ready.Reason, "%s", ready.Message)
	}
}
