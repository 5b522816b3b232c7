// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Merge unites conditions that two sides changed since both saw base: ours, and
// theirs as the server has them now. For the owned types our side is right,
// including their absence. Of the others we take what only we changed, and
// their side is right about everything that they changed. The arguments are not changed.
func Merge(base, ours, theirs []metav1.Condition, owned []string) []metav1.Condition {
	var merged []metav1.Condition
	for _, conditionType := range typesOf(ours, theirs) {
		our, their := find(ours, conditionType), find(theirs, conditionType)
		chosen := our
		if !slices.Contains(owned, conditionType) && !equal(their, find(base, conditionType)) {
			chosen = their
		}
		if chosen != nil {
			merged = append(merged, *chosen)
		}
	}
	sortConditions(merged)
	return merged
}

func typesOf(lists ...[]metav1.Condition) []string {
	var types []string
	for _, condition := range slices.Concat(lists...) {
		if !slices.Contains(types, condition.Type) {
			types = append(types, condition.Type)
		}
	}
	return types
}

func find(conditions []metav1.Condition, conditionType string) *metav1.Condition {
	if i := index(conditions, conditionType); i >= 0 {
		return &conditions[i]
	}
	return nil
}

func equal(a, b *metav1.Condition) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message &&
		a.ObservedGeneration == b.ObservedGeneration && a.LastTransitionTime.Equal(&b.LastTransitionTime)
}
