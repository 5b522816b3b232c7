// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ToMeta returns the steps as conditions with the statuses that other tools know, for a
// summary such as Ready: a step that is Completed is True; one that is Terminated
// or has status Error is False; every other one is Unknown, because its end is still to come. The
// reason is the status, the message the reason. The view may be shown in
// status.conditions, with conditions.Set, which makes its form valid.
func (c Conditions) ToMeta(generation int64) []metav1.Condition {
	view := make([]metav1.Condition, 0, len(c))
	for _, condition := range c {
		view = append(view, metav1.Condition{
			Type: string(condition.Type), Status: metaStatus(condition.Status), ObservedGeneration: generation,
			LastTransitionTime: condition.LastTransitionTime, Reason: string(condition.Status), Message: condition.Reason,
		})
	}
	return view
}

func metaStatus(status ConditionStatus) metav1.ConditionStatus {
	switch status {
	case ConditionCompleted:
		return metav1.ConditionTrue
	case ConditionTerminated, ConditionError:
		return metav1.ConditionFalse
	default:
		return metav1.ConditionUnknown
	}
}
