// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SummaryOption is an option of a summary.
type SummaryOption func(*summary)

// WithConditions names the conditions that the summary depends on. Their order
// decides which of equal conditions gives it the reason and the message. Without this option the
// summary covers all conditions but the target itself, in their order.
func WithConditions(types ...string) SummaryOption {
	return func(s *summary) { s.types = append(s.types, types...) }
}

// WithNegativePolarityConditions names the conditions for which True is bad news,
// as in "FetchFailed".
func WithNegativePolarityConditions(types ...string) SummaryOption {
	return func(s *summary) { s.negative = append(s.negative, types...) }
}

type summary struct {
	types    []string
	negative []string
}

// Summary condenses conditions into one of type target, or returns nil if the
// object has none of them. The weightiest wins, with its reason and message:
//
//  1. bad news of a condition with negative polarity (True)
//  2. bad news of a condition with positive polarity (False)
//  3. good news of a condition with positive polarity (True)
//  4. good news of a condition with negative polarity (False)
//  5. Unknown
//
// If target is itself a condition with negative polarity, the status is inverted.
func Summary(obj Getter, target string, options ...SummaryOption) *metav1.Condition {
	var s summary
	for _, option := range options {
		option(&s)
	}
	var best *metav1.Condition
	for _, condition := range s.inScope(obj, target) {
		if best == nil || s.weight(condition) < s.weight(*best) {
			best = new(condition)
		}
	}
	if best == nil {
		return nil
	}
	status := best.Status
	if slices.Contains(s.negative, best.Type) != slices.Contains(s.negative, target) {
		status = inverted(status)
	}
	return new(newCondition(target, status, best.Reason, best.Message))
}

// SetSummary sets the target to the Summary. It reports whether there was anything
// to summarise; if not, the target is left as it is.
func SetSummary(obj Setter, target string, options ...SummaryOption) bool {
	condition := Summary(obj, target, options...)
	if condition == nil {
		return false
	}
	Set(obj, *condition)
	return true
}

func (s summary) inScope(obj Getter, target string) []metav1.Condition {
	if len(s.types) == 0 {
		return without(obj.GetConditions(), target)
	}
	var scope []metav1.Condition
	for _, conditionType := range s.types {
		if condition := Get(obj, conditionType); condition != nil && conditionType != target {
			scope = append(scope, *condition)
		}
	}
	return scope
}

func (s summary) weight(condition metav1.Condition) int {
	negative := slices.Contains(s.negative, condition.Type)
	switch {
	case condition.Status == metav1.ConditionTrue && negative:
		return 1
	case condition.Status == metav1.ConditionFalse && !negative:
		return 2
	case condition.Status == metav1.ConditionTrue:
		return 3
	case condition.Status == metav1.ConditionFalse:
		return 4
	default:
		return 5
	}
}

func inverted(status metav1.ConditionStatus) metav1.ConditionStatus {
	switch status {
	case metav1.ConditionTrue:
		return metav1.ConditionFalse
	case metav1.ConditionFalse:
		return metav1.ConditionTrue
	default:
		return status
	}
}
