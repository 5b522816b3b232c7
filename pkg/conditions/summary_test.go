// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/test/check"
)

func condition(conditionType string, status metav1.ConditionStatus) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: conditionType + "Reason", Message: conditionType + " message"}
}

func TestSummary(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	// Good, Fine: True is good news. Bad, Worse: True is bad news.
	for _, tc := range []struct {
		name   string
		has    []metav1.Condition
		status metav1.ConditionStatus // "" for no summary
		from   string
	}{
		{"nothing in scope gives nothing", []metav1.Condition{condition("Other", yes)}, "", ""},
		{"good news of a positive one", []metav1.Condition{condition("Good", yes)}, yes, "Good"},
		{"bad news of a positive one", []metav1.Condition{condition("Good", no)}, no, "Good"},
		{"bad news of a negative one", []metav1.Condition{condition("Bad", yes)}, no, "Bad"},
		{"good news of a negative one", []metav1.Condition{condition("Bad", no)}, yes, "Bad"},
		{"unknown", []metav1.Condition{condition("Good", unknown)}, unknown, "Good"},
		{"negative bad news weighs more than positive", []metav1.Condition{condition("Good", no), condition("Bad", yes)}, no, "Bad"},
		{"positive bad news weighs more than good", []metav1.Condition{condition("Good", yes), condition("Fine", no)}, no, "Fine"},
		{"positive good news weighs more than negative", []metav1.Condition{condition("Bad", no), condition("Fine", yes)}, yes, "Fine"},
		{"anything weighs more than unknown", []metav1.Condition{condition("Good", unknown), condition("Bad", no)}, yes, "Bad"},
		{"among equals the first in the list wins", []metav1.Condition{condition("Worse", yes), condition("Bad", yes)}, no, "Bad"},
		{"the target itself does not count", []metav1.Condition{condition("Ready", no), condition("Good", yes)}, yes, "Good"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := conditions.Summary(object(1, tc.has...), "Ready",
				conditions.WithConditions("Ready", "Good", "Fine", "Bad", "Worse"),
				conditions.WithNegativePolarityConditions("Bad", "Worse"))
			var want *metav1.Condition
			if tc.status != "" {
				want = new(metav1.Condition{Type: "Ready", Status: tc.status, Reason: tc.from + "Reason", Message: tc.from + " message"})
			}
			check.Equal(t, want, got)
		})
	}
}

func TestSummaryOfANegativeTargetIsInverted(t *testing.T) {
	got := conditions.Summary(object(1, condition("Good", metav1.ConditionTrue)), "Broken",
		conditions.WithConditions("Good"), conditions.WithNegativePolarityConditions("Broken"))
	check.SameNamed(t, "status", metav1.ConditionFalse, got.Status)
}

func TestSetSummaryDoesNotChangeTheTargetWithoutScope(t *testing.T) {
	obj := object(1)
	conditions.MarkTrue(obj, "Ready", "Fine", "")
	if conditions.SetSummary(obj, "Ready", conditions.WithConditions("Good")) {
		t.Error("there was nothing to summarise")
	}
	conditions.MarkFalse(obj, "Good", "Broken", "it is broken")
	if !conditions.SetSummary(obj, "Ready") || conditions.Get(obj, "Ready").Message != "it is broken" {
		t.Error("without options all other conditions are in scope")
	}
}

func TestMerge(t *testing.T) {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	list := func(c ...metav1.Condition) []metav1.Condition { return c }
	for _, tc := range []struct {
		name               string
		base, ours, theirs []metav1.Condition
		want               []metav1.Condition
	}{
		{"our change is kept where they did nothing", list(condition("X", no)), list(condition("X", yes)), list(condition("X", no)), list(condition("X", yes))},
		{"their change is kept where we did nothing", list(condition("X", no)), list(condition("X", no)), list(condition("X", yes)), list(condition("X", yes))},
		{"theirs wins where both changed an unowned condition", list(condition("X", "Unknown")), list(condition("X", no)), list(condition("X", yes)), list(condition("X", yes))},
		{"ours wins where we own it", list(condition("Own", "Unknown")), list(condition("Own", no)), list(condition("Own", yes)), list(condition("Own", no))},
		{"our absence wins where we own it", list(condition("Own", yes)), nil, list(condition("Own", yes)), nil},
		{"their new condition is kept", nil, list(condition("Own", yes)), list(condition("X", yes)), list(condition("Own", yes), condition("X", yes))},
		{"their removal is kept", list(condition("X", yes)), list(condition("X", yes)), nil, nil},
		{"our removal is kept", list(condition("X", yes)), nil, list(condition("X", yes)), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := conditions.Merge(tc.base, tc.ours, tc.theirs, []string{"Own"})
			check.Equal(t, tc.want, got)
		})
	}
}
