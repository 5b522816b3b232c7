// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/test/check"
)

// TestReleaseTransitions is the table of transitions out of a lock.
func TestReleaseTransitions(t *testing.T) {
	failure := errors.New("no quota")
	long := strings.Repeat("x", 3000)
	before := Condition{Type: "a", Status: ConditionInitialized, Reason: "r", LastTransitionTime: metav1.Unix(77, 0)}
	unknown := Condition{Type: "a", Status: ConditionLocked, Reason: "by hand"}
	then, moment := metav1.Unix(77, 0), metav1.NewTime(now)
	returned := func(change func(*Condition)) Condition {
		c := before
		c.Status, c.Reason = ConditionCreated, "made"
		if change != nil {
			change(&c)
		}
		return c
	}
	for _, tc := range []struct {
		name      string
		before    Condition
		returned  Condition
		err       error
		transient bool
		status    ConditionStatus
		reason    string // a part of it
		time      metav1.Time
		want      error
	}{
		{"a final status", before, returned(nil), nil, false, ConditionCreated, "made", moment, nil},
		{"the same status keeps its time", before, returned(func(c *Condition) { c.Status = ConditionInitialized }), nil, false, ConditionInitialized, "made", then, nil},
		{"a status of one's own", before, returned(func(c *Condition) { c.Status = "Mine" }), nil, false, "Mine", "made", moment, nil},
		{"a later time of one's own", before, returned(func(c *Condition) { c.LastTransitionTime = metav1.Unix(99, 0) }), nil, false, ConditionCreated, "made", metav1.Unix(99, 0), nil},
		{"a long reason is cut", before, returned(func(c *Condition) { c.Reason = long }), nil, false, ConditionCreated, "xxx", moment, nil},
		{"still locked", before, returned(func(c *Condition) { c.Status = ConditionLocked }), nil, false, ConditionError, "not released", moment, LockNotReleasedErr},
		{"no status", before, returned(func(c *Condition) { c.Status = "" }), nil, false, ConditionError, "status", moment, LockNotReleasedErr},
		{"nothing at all", before, Condition{}, nil, false, ConditionError, "instead of", moment, LockNotReleasedErr},
		{"another type", before, returned(func(c *Condition) { c.Type = "b" }), nil, false, ConditionError, `"b" instead of "a"`, moment, LockNotReleasedErr},
		{"a status that is too long", before, returned(func(c *Condition) { c.Status = ConditionStatus(long) }), nil, false, ConditionError, "128", moment, LockNotReleasedErr},
		{"an error", before, Condition{}, failure, false, ConditionError, "no quota", moment, failure},
		{"an error beside a condition", before, returned(nil), failure, false, ConditionError, "no quota", moment, failure},
		{"a long error", before, Condition{}, errors.New(long), false, ConditionError, "xxx", moment, nil},
		{"a transient error", before, returned(nil), failure, true, ConditionInitialized, "no quota", then, failure},
		{"an interruption", before, Condition{}, context.Canceled, true, ConditionInitialized, "canceled", then, context.Canceled},
		{"a transient error, where the former status is unknown", unknown, Condition{}, failure, true, ConditionError, "no quota", moment, failure},
		{"the task finds out what was not known", unknown, returned(nil), nil, false, ConditionCreated, "made", then, nil},
		{"the task does not find it out", unknown, unknown, nil, false, ConditionError, "not released", moment, LockNotReleasedErr},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.returned.Lock = &LockInfo{Token: "x"}
			got, err := finalCondition(taskEnd{before: tc.before, returned: tc.returned, err: tc.err, transient: tc.transient, now: now})
			if got.Type != "a" || got.Lock != nil || got.Status != tc.status || !strings.Contains(got.Reason, tc.reason) {
				t.Errorf("final condition %+v", got)
			}
			if !got.LastTransitionTime.Equal(&tc.time) {
				t.Errorf("time %s, want %s", got.LastTransitionTime, tc.time)
			}
			if err == nil && (tc.want != nil || tc.err != nil) || tc.want != nil && !errors.Is(err, tc.want) || tc.want == nil && tc.err == nil && err != nil {
				t.Errorf("error %v", err)
			}
			if e := validate(got); e != nil || len([]rune(got.Reason)) > maxReason {
				t.Errorf("the server would refuse it: %v", e)
			}
			if got.Status == ConditionLocked {
				t.Error("it is still locked")
			}
		})
	}
}

// TestStanding is the table of what a release finds after a conflict.
func TestStanding(t *testing.T) {
	before := Condition{Type: "a", Status: ConditionInitialized, LastTransitionTime: metav1.Unix(77, 0)}
	final := Condition{Type: "a", Status: ConditionCreated, Reason: "made", LastTransitionTime: metav1.Unix(88, 0)}
	byTask := Condition{Type: "a", Status: "Half", LastTransitionTime: metav1.Unix(80, 0)}
	for _, tc := range []struct {
		name   string
		stored *Condition
		left   Condition
		want   standing
	}{
		{"our lock", lockedBy("me", "p1", 0), *lockedBy("me", "p1", 0), ours},
		{"our lock, with a corrected time", with(lockedBy("me", "p1", 0), func(c *Condition) { c.Lock.AcquiredAt = metav1.MicroTime{} }), Condition{}, ours},
		{"the lock of another holder", with(lockedBy("other", "p2", 0), func(c *Condition) { c.Lock.Token = "theirs" }), Condition{}, lost},
		{"a lock without a record", with(lockedBy("", "", 0), func(c *Condition) { c.Lock = nil }), Condition{}, lost},
		{"the end that we wanted", &final, *lockedBy("me", "p1", 0), done},
		{"no condition any more", nil, *lockedBy("me", "p1", 0), ours},
		{"put back to what it was", &before, *lockedBy("me", "p1", 0), ours},
		{"what the task itself wrote", &byTask, byTask, ours},
		{"what another client wrote", &byTask, *lockedBy("me", "p1", 0), lost},
		{"the end of another holder", with(final.DeepCopy(), func(c *Condition) { c.Reason = "made by another" }), *lockedBy("me", "p1", 0), lost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check.Same(t, tc.want, standingOf(released{stored: tc.stored, token: "old", before: before, left: tc.left, final: final}))
		})
	}
}

func TestOtherStepsAreMerged(t *testing.T) {
	c := func(conditionType ConditionType, reason string) Condition {
		return Condition{Type: conditionType, Status: "X", Reason: reason}
	}
	base := Conditions{c("kept", "1"), c("ours", "1"), c("theirs", "1"), c("removed by us", "1"), c("removed by them", "1"), c("a", "1")}
	memory := Conditions{c("kept", "1"), c("ours", "2"), c("theirs", "1"), c("removed by them", "1"), c("a", "2"), c("new by us", "2")}
	server := Conditions{c("a", "3"), c("kept", "1"), c("ours", "1"), c("theirs", "3"), c("removed by us", "1"), c("new by them", "3")}
	want := Conditions{c("a", "final"), c("kept", "1"), c("ours", "2"), c("theirs", "3"), c("new by them", "3"), c("new by us", "2")}
	if d := cmp.Diff(want, mergeOthers(base, memory, server, c("a", "final"))); d != "" {
		t.Errorf("merged (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Conditions{c("a", "final")}, mergeOthers(nil, nil, nil, c("a", "final"))); d != "" {
		t.Error(d)
	}
}
