// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"cmp"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
)

// settle brings the conditions in line with the result.
func (h *Helper) settle(obj conditions.Setter, o HelperOptions) (result.Verdict, []patch.Option) {
	now := o.Clock()
	var owned []string
	for _, c := range o.Conditions {
		owned = append(owned, c.Owned...)
	}
	options := []patch.Option{patch.WithOwnedConditions{Conditions: owned}}
	var verdict result.Verdict
	switch {
	case o.Verdict != nil:
		verdict = *o.Verdict
		applyVerdict(obj, now, verdict)
	case o.ResultBuilder != nil:
		verdict = result.Compute(o.ReconcileResult, o.ReconcileError, o.ResultBuilder)
		if verdict.Outcome == result.Succeeded {
			if err := contradiction(obj, o); err != nil {
				verdict = result.Compute(o.ReconcileResult, err, o.ResultBuilder)
			}
		}
		applyVerdict(obj, now, verdict)
	}
	switch {
	case o.ObservedGenerationAlways:
		options = append(options, patch.WithStatusObservedGeneration{})
	default:
		options = append(options, patchOptions(verdict)...)
	}
	// The summaries come after the verdict: Reconciling and Stalled are among
	// what they summarise.
	for _, c := range o.Conditions {
		summarized := len(c.Summarize) > 0 && conditions.SetSummary(obj, now, c.Target,
			conditions.WithConditions(c.Summarize...),
			conditions.WithNegativePolarityConditions(c.NegativePolarity...))
		if c.Target != v1alpha1.ConditionReady {
			continue
		}
		if bad := firstFalse(obj, o.BiPolarity); bad != nil {
			conditions.MarkFalse(obj, now, c.Target, bad.Reason, "%s", bad.Message)
			summarized = true
		}
		settleReady(obj, now, verdict, summarized)
	}
	return verdict, options
}

// contradiction returns the bad news about a pass that claims success, or nil. Reconciling
// and Stalled do not count: the success is about to remove them.
func contradiction(obj conditions.Getter, o HelperOptions) error {
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
