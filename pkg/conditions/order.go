// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// ranks put the conditions that people look for first on top.
var ranks = map[string]int{
	v1alpha1.ConditionReady:       -3,
	v1alpha1.ConditionReconciling: -2,
	v1alpha1.ConditionStalled:     -1,
}

// sortConditions orders Ready, Reconciling, Stalled, then the rest by name.
func sortConditions(conditions []metav1.Condition) {
	slices.SortStableFunc(conditions, func(a, b metav1.Condition) int {
		return cmp.Or(cmp.Compare(ranks[a.Type], ranks[b.Type]), cmp.Compare(a.Type, b.Type))
	})
}
