// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Set adds the condition or replaces the one of the same type.
//
// The generation of the object is stamped as observedGeneration. The time of the
// last transition is now if the status is another one than before, else it
// stays. A message longer than [MaxMessage] is cut; a reason that the API server
// would refuse is made acceptable, because a status that cannot be written says nothing.
func Set(obj Setter, now time.Time, condition metav1.Condition) {
	// The serialised form knows no fractions of a second: with them, an object
	// that was never written would differ from the same object after reading it.
	transition := metav1.NewTime(now.UTC().Truncate(time.Second))
	if old := Get(obj, condition.Type); old != nil && old.Status == condition.Status && !old.LastTransitionTime.IsZero() {
		transition = old.LastTransitionTime
	}
	condition.LastTransitionTime = transition
	condition.ObservedGeneration = obj.GetGeneration()
	condition.Reason = validReason(condition.Reason)
	condition.Message = boundedMessage(condition.Message)

	// The old slice may be shared with a copy of the object, so it is not changed in place.
	conditions := without(obj.GetConditions(), condition.Type)
	conditions = append(conditions, condition)
	sortConditions(conditions)
	obj.SetConditions(conditions)
}

// MarkTrue sets the condition to True.
func MarkTrue(obj Setter, now time.Time, conditionType, reason, format string, args ...any) {
	Set(obj, now, newCondition(conditionType, metav1.ConditionTrue, reason, fmt.Sprintf(format, args...)))
}

// MarkFalse sets the condition to False.
func MarkFalse(obj Setter, now time.Time, conditionType, reason, format string, args ...any) {
	Set(obj, now, newCondition(conditionType, metav1.ConditionFalse, reason, fmt.Sprintf(format, args...)))
}

// MarkUnknown sets the condition to Unknown.
func MarkUnknown(obj Setter, now time.Time, conditionType, reason, format string, args ...any) {
	Set(obj, now, newCondition(conditionType, metav1.ConditionUnknown, reason, fmt.Sprintf(format, args...)))
}

// MarkReconciling sets Reconciling to True and removes Stalled.
func MarkReconciling(obj Setter, now time.Time, reason, format string, args ...any) {
	Delete(obj, v1alpha1.ConditionStalled)
	MarkTrue(obj, now, v1alpha1.ConditionReconciling, reason, format, args...)
}

// MarkStalled sets Stalled to True and removes Reconciling.
func MarkStalled(obj Setter, now time.Time, reason, format string, args ...any) {
	Delete(obj, v1alpha1.ConditionReconciling)
	MarkTrue(obj, now, v1alpha1.ConditionStalled, reason, format, args...)
}

// Delete removes the conditions of the given types. Types that the object does
// not have are ignored.
func Delete(obj Setter, conditionTypes ...string) {
	conditions := obj.GetConditions()
	if !slices.ContainsFunc(conditionTypes, func(t string) bool { return index(conditions, t) >= 0 }) {
		return
	}
	obj.SetConditions(without(conditions, conditionTypes...))
}

func newCondition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// without returns a new slice that lacks the conditions of the given types.
func without(conditions []metav1.Condition, conditionTypes ...string) []metav1.Condition {
	rest := make([]metav1.Condition, 0, len(conditions)+1)
	for _, condition := range conditions {
		if !slices.Contains(conditionTypes, condition.Type) {
			rest = append(rest, condition)
		}
	}
	return rest
}
