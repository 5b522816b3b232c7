// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Get returns a copy of the condition, or nil if the object does not have it.
func Get(obj Getter, conditionType string) *metav1.Condition {
	if i := index(obj.GetConditions(), conditionType); i >= 0 {
		return new(obj.GetConditions()[i])
	}
	return nil
}

// Has tells whether the object has the condition, whatever its status.
func Has(obj Getter, conditionType string) bool { return Get(obj, conditionType) != nil }

// IsTrue tells whether the condition is there and True.
func IsTrue(obj Getter, conditionType string) bool {
	return hasStatus(obj, conditionType, metav1.ConditionTrue)
}

// IsFalse tells whether the condition is there and False.
func IsFalse(obj Getter, conditionType string) bool {
	return hasStatus(obj, conditionType, metav1.ConditionFalse)
}

// IsUnknown tells whether the condition is Unknown or absent.
func IsUnknown(obj Getter, conditionType string) bool {
	return !Has(obj, conditionType) || hasStatus(obj, conditionType, metav1.ConditionUnknown)
}

// IsReady tells whether the object is Ready, and neither Reconciling nor Stalled.
func IsReady(obj Getter) bool {
	return IsTrue(obj, v1alpha1.ConditionReady) && !IsReconciling(obj) && !IsStalled(obj)
}

// IsReconciling tells whether work on the object goes on.
func IsReconciling(obj Getter) bool { return IsTrue(obj, v1alpha1.ConditionReconciling) }

// IsStalled tells whether no progress is possible until somebody changes something.
func IsStalled(obj Getter) bool { return IsTrue(obj, v1alpha1.ConditionStalled) }

func hasStatus(obj Getter, conditionType string, status metav1.ConditionStatus) bool {
	condition := Get(obj, conditionType)
	return condition != nil && condition.Status == status
}

func index(conditions []metav1.Condition, conditionType string) int {
	return slices.IndexFunc(conditions, func(c metav1.Condition) bool { return c.Type == conditionType })
}
