// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditionstest_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

// with returns a valid condition, with changes.
func with(conditionType string, status metav1.ConditionStatus, changes ...func(*metav1.Condition)) metav1.Condition {
	c := metav1.Condition{
		Type: conditionType, Status: status, Reason: "Because", ObservedGeneration: 3,
		LastTransitionTime: metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)),
	}
	for _, change := range changes {
		change(&c)
	}
	return c
}

func TestErrors(t *testing.T) {
	reason := func(r string) func(*metav1.Condition) { return func(c *metav1.Condition) { c.Reason = r } }
	for _, tc := range []struct {
		name     string
		observed int64
		has      []metav1.Condition
		want     string // "" for no error
	}{
		{"ready", 3, []metav1.Condition{with("Ready", yes)}, ""},
		{"failed and trying", 2, []metav1.Condition{with("Ready", no), with("Reconciling", yes)}, ""},
		{"stalled", 3, []metav1.Condition{with("Ready", no), with("Stalled", yes)}, ""},
		{"waiting", 3, []metav1.Condition{with("Ready", unknown), with("Reconciling", yes)}, ""},
		{"suspended", 3, []metav1.Condition{with("Ready", unknown, reason("Suspended"))}, ""},
		{"no condition at all", 0, nil, "Ready is missing"},
		{"ready while at work", 3, []metav1.Condition{with("Ready", yes), with("Reconciling", yes)}, "Ready is True, but Reconciling"},
		{"ready while stalled", 3, []metav1.Condition{with("Ready", yes), with("Stalled", yes)}, "Stalled is there, but Ready is True"},
		{"unknown while stalled", 3, []metav1.Condition{with("Ready", unknown, reason("Suspended")), with("Stalled", yes)}, "Stalled is there, but Ready is Unknown"},
		{"reconciling and stalled", 3, []metav1.Condition{with("Ready", no), with("Reconciling", yes), with("Stalled", yes)}, "both there"},
		{"reconciling false", 3, []metav1.Condition{with("Ready", no), with("Reconciling", no)}, "Reconciling is False"},
		{"stalled unknown", 3, []metav1.Condition{with("Ready", no), with("Stalled", unknown)}, "Stalled is Unknown"},
		{"unknown without a reason to be", 3, []metav1.Condition{with("Ready", unknown)}, "Reconciling is missing"},
		{"a condition of the future", 3, []metav1.Condition{with("Ready", yes, func(c *metav1.Condition) { c.ObservedGeneration = 4 })}, "ahead of 3"},
		{"a status of the future", 4, []metav1.Condition{with("Ready", yes)}, "ahead of generation 3"},
		{"a reason in words", 3, []metav1.Condition{with("Ready", yes, reason("all fine"))}, "not CamelCase"},
		{"a message too long", 3, []metav1.Condition{with("Ready", yes, func(c *metav1.Condition) { c.Message = strings.Repeat("x", 1025) })}, "1025 bytes"},
		{"no time", 3, []metav1.Condition{with("Ready", yes, func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} })}, "no time"},
		{"a strange status", 3, []metav1.Condition{with("Ready", yes), with("X", "Maybe")}, `"Maybe"`},
		{"twice the same", 3, []metav1.Condition{with("Ready", yes), with("X", yes), with("X", yes)}, "more than once"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			w.Status.Conditions, w.Status.ObservedGeneration = tc.has, tc.observed
			errs := conditionstest.Errors(w)
			switch {
			case tc.want == "" && len(errs) > 0:
				t.Errorf("unexpected: %v", errs)
			case tc.want != "" && (len(errs) != 1 || !strings.Contains(errs[0].Error(), tc.want)):
				t.Errorf("got %v, want one that says %q", errs, tc.want)
			}
			adapted := conditionstest.Errors(conditions.For(w, &w.Status.Conditions))
			if len(adapted) != len(errs) {
				t.Errorf("through an adapter: %v", adapted)
			}
		})
	}
}

func TestCheckFailsTheTest(t *testing.T) {
	probe := &recorder{TB: t}
	conditionstest.Check(probe, &widget.Widget{})
	check.SameNamed(t, "errors", 1, probe.errors)
}

// recorder counts errors in place of failing.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.errors++ }
