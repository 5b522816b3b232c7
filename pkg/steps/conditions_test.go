// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/check"
)

func at(seconds int64) metav1.Time { return metav1.Unix(seconds, 0) }

func TestFinding(t *testing.T) {
	list := steps.Conditions{
		{Type: "a", Status: steps.ConditionCreated, Reason: "first"},
		{Type: "b", Status: steps.ConditionError},
		{Type: "c", Status: steps.ConditionCreated, Lock: &steps.LockInfo{Token: "x"}},
	}
	if found := list.FindType("b"); found == nil || found.Status != steps.ConditionError {
		t.Errorf("FindType: %+v", found)
	}
	if found := list.FindStatus(steps.ConditionCreated); found == nil || found.Type != "a" {
		t.Errorf("FindStatus is not the first: %+v", found)
	}
	if list.FindType("x") != nil || list.FindStatus(steps.ConditionLocked) != nil {
		t.Error("something that is not there was found")
	}
	if got := list.FindOrInitializeFor("x"); got != (steps.Condition{Type: "x", Status: steps.ConditionInitialized}) || len(list) != 3 {
		t.Errorf("FindOrInitializeFor: %+v, %d conditions", got, len(list))
	}
	if !list.TypeHasStatus("b", steps.ConditionError) || list.TypeHasStatus("a", steps.ConditionError) || list.TypeHasStatus("x", steps.ConditionInitialized) {
		t.Error("TypeHasStatus")
	}
	if !list.AnyWithStatus(steps.ConditionError) || list.AnyWithStatus(steps.ConditionTerminated) {
		t.Error("AnyWithStatus")
	}
	if found := list.FindType("a"); !found.StatusIsOneOf("X", steps.ConditionCreated) || found.StatusIsOneOf("X") || list.FindType("x").StatusIsOneOf("X") {
		t.Error("StatusIsOneOf")
	}
	found := list.FindType("c")
	found.Reason, found.Lock.Token = "changed", "changed"
	list.FindStatus(steps.ConditionError).Reason = "changed"
	if list[2].Reason != "" || list[2].Lock.Token != "x" || list[1].Reason != "" {
		t.Error("what was found is no copy")
	}
}

func TestSetConditionStampsTheTransition(t *testing.T) {
	for _, tc := range []struct {
		name     string
		old      *steps.Condition
		set      steps.Condition
		want     metav1.Time
		wantsNow bool
	}{
		{"new", nil, steps.Condition{Status: "X"}, metav1.Time{}, true},
		{"new, with a time", nil, steps.Condition{Status: "X", LastTransitionTime: at(7)}, at(7), false},
		{"same status", &steps.Condition{Status: "X", LastTransitionTime: at(5)}, steps.Condition{Status: "X", Reason: "other"}, at(5), false},
		{"another status with the old time, as a condition has that was found",
			&steps.Condition{Status: "X", LastTransitionTime: at(5)}, steps.Condition{Status: "Y", LastTransitionTime: at(5)}, metav1.Time{}, true},
		{"another status with a later time", &steps.Condition{Status: "X", LastTransitionTime: at(5)}, steps.Condition{Status: "Y", LastTransitionTime: at(8)}, at(8), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var list steps.Conditions
			if tc.old != nil {
				tc.old.Type = "a"
				list = steps.Conditions{{Type: "z", Status: "Z"}, *tc.old}
			}
			before := list.DeepCopy()
			shared := list
			tc.set.Type = "a"
			start := time.Now().Add(-time.Second)
			check.NoError(t, list.SetCondition(tc.set))
			got := list.FindType("a")
			if got.Status != tc.set.Status || got.Reason != tc.set.Reason {
				t.Errorf("stored %+v", got)
			}
			if tc.wantsNow && got.LastTransitionTime.Before(new(metav1.NewTime(start))) || !tc.wantsNow && !got.LastTransitionTime.Equal(&tc.want) {
				t.Errorf("time %s", got.LastTransitionTime)
			}
			if d := cmp.Diff(before, shared); d != "" {
				t.Errorf("a list that is shared was changed: %s", d)
			}
		})
	}
}

func TestSetConditionRefusesWhatTheServerWould(t *testing.T) {
	long := strings.Repeat("x", 400)
	for _, condition := range []steps.Condition{
		{}, {Type: "a"}, {Status: "X"}, {Type: "provider://x", Status: "X"}, {Type: "a b", Status: "X"},
		{Type: steps.ConditionType(long), Status: "X"}, {Type: "a", Status: steps.ConditionStatus(long)},
	} {
		var list steps.Conditions
		if err := list.SetCondition(condition); err == nil || len(list) != 0 {
			t.Errorf("%+v: %v", condition, err)
		}
	}
	var list steps.Conditions
	check.NoError(t, list.SetCondition(steps.Condition{Type: "example.com/Bucket", Status: "X", Reason: strings.Repeat("ä", 2000)}))
	if n := len([]rune(list[0].Reason)); n != 1024 {
		t.Errorf("the reason has %d characters", n)
	}
	if err := (*steps.Conditions)(nil).SetCondition(steps.Condition{}); !errors.Is(err, steps.NotInitializedConditionsErr) {
		t.Errorf("no conditions: %v", err)
	}
}

func TestALockRecordGoesWithTheStatus(t *testing.T) {
	list := steps.Conditions{{Type: "a", Status: steps.ConditionLocked, Lock: &steps.LockInfo{Token: "x"}}}
	c := list.FindOrInitializeFor("a")
	c.Status = steps.ConditionCompleted
	if err := list.SetCondition(c); err != nil || list[0].Lock != nil {
		t.Errorf("%v, %+v", err, list[0])
	}
}

func TestRemoveConditionWith(t *testing.T) {
	list := steps.Conditions{{Type: "a"}, {Type: "b"}, {Type: "c"}}
	shared := list
	if !list.RemoveConditionWith("b") || list.RemoveConditionWith("b") || len(list) != 2 || list[1].Type != "c" {
		t.Errorf("%+v", list)
	}
	check.SameNamed(t, "a list that is shared was changed", "b", shared[1].Type)
	if (*steps.Conditions)(nil).RemoveConditionWith("a") {
		t.Error("removed from nothing")
	}
}
