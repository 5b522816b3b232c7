// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/test/check"
)

var now = time.Unix(10_000, 0).UTC()

const lease = time.Minute

// lockedBy is a lock that was acquired some time ago, from status Created.
func lockedBy(holder, process string, ago time.Duration) *Condition {
	return &Condition{
		Type: "a", Status: ConditionLocked, Reason: "Resource locked by " + holder, LastTransitionTime: metav1.NewTime(now.Add(-ago)),
		Lock: &LockInfo{
			Holder: holder, Process: process, Token: "old", AcquiredAt: metav1.NewMicroTime(now.Add(-ago)), Lease: metav1.Duration{Duration: lease},
			Previous: ConditionCreated, PreviousReason: "half way", PreviousTransitionTime: new(metav1.Unix(77, 0)),
		},
	}
}

func with(c *Condition, change func(*Condition)) *Condition {
	change(c)
	return c
}

// TestAdmission is the table of transitions into a lock.
func TestAdmission(t *testing.T) {
	created := Condition{Type: "a", Status: ConditionCreated, Reason: "half way", LastTransitionTime: metav1.Unix(77, 0)}
	unrecorded := func(ago time.Duration) *Condition {
		return with(lockedBy("", "", ago), func(c *Condition) { c.Lock = nil; c.Reason = "by hand" })
	}
	rowsOf := func(status ConditionStatus) *Condition {
		return &Condition{Type: "a", Status: status, Reason: "r", LastTransitionTime: metav1.Unix(77, 0)}
	}
	before := func(status ConditionStatus) Condition { return *rowsOf(status) }
	for _, tc := range []struct {
		name    string
		stored  *Condition
		running bool
		unique  bool
		want    decision
		before  Condition
		retry   time.Duration // of a caller that waits
	}{
		{"no condition: initialized since the object exists", nil, false, false, acquire,
			Condition{Type: "a", Status: ConditionInitialized, LastTransitionTime: metav1.Unix(5, 0)}, 0},
		{"initialized", rowsOf(ConditionInitialized), false, false, acquire, before(ConditionInitialized), 0},
		{"created", rowsOf(ConditionCreated), false, false, acquire, before(ConditionCreated), 0},
		{"completed", rowsOf(ConditionCompleted), false, false, acquire, before(ConditionCompleted), 0},
		{"terminating", rowsOf(ConditionTerminating), false, false, acquire, before(ConditionTerminating), 0},
		{"terminated", rowsOf(ConditionTerminated), false, false, acquire, before(ConditionTerminated), 0},
		{"error is not final", rowsOf(ConditionError), false, false, acquire, before(ConditionError), 0},
		{"a status of one's own", rowsOf("Mine"), false, false, acquire, before("Mine"), 0},
		{"a record without a lock is no lock", with(rowsOf(ConditionCreated), func(c *Condition) { c.Lock = &LockInfo{} }), false, false, acquire, before(ConditionCreated), 0},

		{"another process holds it", lockedBy("other", "p2", 20*time.Second), false, false, wait, Condition{}, 40 * time.Second},
		{"another process, just now", lockedBy("other", "p2", 0), false, false, wait, Condition{}, lease},
		{"another process, the last moment", lockedBy("other", "p2", lease-time.Second), false, false, wait, Condition{}, time.Second},
		{"another process, the lease ran out", lockedBy("other", "p2", lease), false, false, takeOver, created, 0},
		{"another process, long ago", lockedBy("other", "p2", 1000*time.Hour), false, false, takeOver, created, 0},
		{"another process with a clock that is a little ahead", lockedBy("other", "p2", -5*time.Second), false, false, wait, Condition{}, lease + 5*time.Second},
		{"another process in a time that cannot be", lockedBy("other", "p2", -20*365*24*time.Hour), false, false, correct, Condition{}, lease},
		{"another process of a host of the same name", lockedBy("me", "p2", 0), false, false, wait, Condition{}, lease},
		{"the predecessor of this process", lockedBy("me", "p2", 0), false, true, takeOver, created, 0},
		{"the predecessor, in a time that cannot be", lockedBy("me", "p2", -1000*time.Hour), false, true, takeOver, created, 0},
		{"another holder that is unique", lockedBy("other", "p2", 0), false, true, wait, Condition{}, lease},

		{"this process, at work on it", lockedBy("me", "p1", 0), true, true, wait, Condition{}, lease},
		{"this process, no longer running", lockedBy("me", "p1", 0), false, false, takeOver, created, 0},
		{"this process, at work for longer than its lease", lockedBy("me", "p1", lease), true, true, takeOver, created, 0},

		{"no record of the holder", unrecorded(20 * time.Second), false, true, wait, Condition{}, 40 * time.Second},
		{"no record, the lease ran out: the task has to find out", unrecorded(lease), false, false, takeOver, *unrecorded(lease), 0},
		{"no record, in a time that cannot be", unrecorded(-time.Hour), false, false, correct, Condition{}, lease},
		{"no record and no time", with(unrecorded(0), func(c *Condition) { c.LastTransitionTime = metav1.Time{} }), false, false, takeOver,
			Condition{Type: "a", Status: ConditionLocked, Reason: "by hand"}, 0},
		{"a record without a lease counts as one of ours", with(lockedBy("other", "p2", 20*time.Second), func(c *Condition) { c.Lock.Lease.Duration = 0 }),
			false, false, wait, Condition{}, 40 * time.Second},
		{"a record with a negative lease", with(lockedBy("other", "p2", lease), func(c *Condition) { c.Lock.Lease.Duration = -time.Hour }), false, false, takeOver, created, 0},
		{"a record with another lease", with(lockedBy("other", "p2", 20*time.Second), func(c *Condition) { c.Lock.Lease.Duration = time.Hour }),
			false, false, wait, Condition{}, time.Hour - 20*time.Second},
		{"a record without a former transition", with(lockedBy("other", "p2", lease), func(c *Condition) { c.Lock.PreviousTransitionTime = nil }), false, false, takeOver,
			Condition{Type: "a", Status: ConditionCreated, Reason: "half way"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.before.Status == ConditionError {
				tc.before.AttemptKey = idempotencyKey("", tc.before)
			}
			stored := tc.stored.DeepCopy()
			r := request{
				conditionType: "a", stored: tc.stored, running: tc.running, lease: lease, now: now, created: metav1.Unix(5, 0),
				self: identity{holder: "me", process: "p1", unique: tc.unique}, token: "new",
			}
			got := admit(r)
			if got.decision != tc.want {
				t.Fatalf("decided to %s, want %s", got.decision, tc.want)
			}
			check.EqualNamed(t, "the task sees", tc.before, got.before)
			if d := cmp.Diff(stored, tc.stored); d != "" {
				t.Errorf("the argument was changed: %s", d)
			}
			checkAdmission(t, r, got, tc.retry)
		})
	}
}

// checkAdmission checks what follows from the decision in every row.
func checkAdmission(t *testing.T, r request, got admission, retry time.Duration) {
	t.Helper()
	waits := got.decision == wait || got.decision == correct
	if (got.held != nil) != waits {
		t.Fatalf("held: %v", got.held)
	}
	if waits && got.held.RetryAfter != retry {
		t.Errorf("retry after %s, want %s", got.held.RetryAfter, retry)
	}
	again := r
	switch got.decision {
	case correct:
		// What was corrected is believed from then on, and ends.
		again.stored = &got.locked
		if next := admit(again); next.decision != wait {
			t.Errorf("after the correction: %s", next.decision)
		}
		if l := r.stored.Lock; l != nil && got.locked.Lock.Token != l.Token {
			t.Error("a correction must leave the lock with its holder")
		}
	case wait:
		if again.now = r.now.Add(got.held.RetryAfter); admit(again).decision != takeOver {
			t.Error("it is not free when it was said to be")
		}
	default:
		// A caller that finds the new lock waits, and one that takes it over sees the same as this task.
		again.stored, again.self.process, again.self.unique, again.running = &got.locked, "p3", false, false
		if next := admit(again); next.decision != wait || next.held.Holder != "me" {
			t.Errorf("another process: %s", next.decision)
		}
		again.now = r.now.Add(lease)
		check.EqualNamed(t, "after a takeover the task sees", got.before, admit(again).before)
	}
}
