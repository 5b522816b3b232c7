// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// ending is all that the condition after a task depends on.
type ending struct {
	before, returned Condition
	err              error
	// passes tells that the error will pass by itself, or that the task was interrupted.
	passes bool
	// key is that of the attempt.
	key string
	now time.Time
}

// settle returns the condition to write after a task, and the error to return. It is pure.
func settle(e ending) (Condition, error) {
	final, err := e.returned, e.err
	switch {
	case err != nil && e.passes && e.before.Status != ConditionLocked:
		final = e.before
		final.Reason = err.Error()
	case err != nil:
		final = Condition{Status: ConditionError, Reason: err.Error()}
	default:
		if err = misuse(e.before.Type, e.returned); err != nil {
			final = Condition{Status: ConditionError, Reason: err.Error()}
		}
	}
	final.Type, final.Lock, final.AttemptKey = e.before.Type, nil, ""
	if final.Status == ConditionError {
		final.AttemptKey = e.key
	}
	final.Reason = boundedReason(final.Reason)
	final.LastTransitionTime = transition(&e.before, final, e.now)
	return final, err
}

// misuse tells why what the task returned is no release of the lock.
func misuse(conditionType ConditionType, returned Condition) error {
	switch {
	case returned.Status == ConditionLocked:
		return LockNotReleasedErr
	case returned.Type != conditionType:
		return fmt.Errorf("%w: the task returned the condition %q instead of %q", LockNotReleasedErr, returned.Type, conditionType)
	}
	if err := validate(returned); err != nil {
		return fmt.Errorf("%w: %w", LockNotReleasedErr, err)
	}
	return nil
}

// standing says how the stored condition stands to the lock when the first attempt to
// release it met a change of somebody else.
type standing string

const (
	// ours: the lock is still held, or nobody else did anything with the step.
	ours standing = "ours"
	// done: an earlier attempt arrived, only its answer did not.
	done standing = "done"
	// lost: the step is somebody else's now.
	lost standing = "lost"
)

// released is all that the standing depends on.
type released struct {
	stored *Condition // on the server now; nil if there is none
	token  string
	// before is the condition before the lock, left the one that the task left in memory,
	// final the one to be written.
	before, left, final Condition
}

// standingOf is pure.
func standingOf(r released) standing {
	switch stored := r.stored; {
	case stored == nil:
		// Removed by hand. What the task did is a fact that nobody else knows.
		return ours
	case stored.Lock != nil && stored.Lock.Token == r.token:
		return ours
	case stored.Status == ConditionLocked:
		return lost
	case same(*stored, r.final):
		return done
	case same(*stored, r.left), same(*stored, r.before):
		// Written by the task itself, or put back to what it was.
		return ours
	default:
		return lost
	}
}

// same compares what people see of two conditions.
func same(a, b Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.LastTransitionTime.Unix() == b.LastTransitionTime.Unix()
}

// mergeOthers returns the conditions to write: final for its type; of the others what
// the task changed in memory since base, and else what the server has.
func mergeOthers(base, memory, server Conditions, final Condition) Conditions {
	var merged Conditions
	for _, theirs := range server {
		if theirs.Type == final.Type {
			merged = append(merged, final)
			continue
		}
		was, is := base.FindType(theirs.Type), memory.FindType(theirs.Type)
		switch {
		case equality.Semantic.DeepEqual(was, is):
			merged = append(merged, theirs)
		case is != nil:
			merged = append(merged, *is)
		}
	}
	for _, ours := range memory {
		unknown := server.FindType(ours.Type) == nil
		if unknown && ours.Type != final.Type && !equality.Semantic.DeepEqual(base.FindType(ours.Type), &ours) {
			merged = append(merged, ours)
		}
	}
	merged.put(final)
	return merged
}
