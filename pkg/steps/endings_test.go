// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/steps"
)

func TestEndingsOfATask(t *testing.T) {
	failure := errors.New("no quota")
	wait := 7 * time.Second
	for _, tc := range []struct {
		name   string
		task   steps.Task
		status steps.ConditionStatus
		reason string
		want   error
		text   string // of the error
	}{
		{"an error", func(c steps.Condition) (steps.Condition, error) { return c, failure }, steps.ConditionError, "no quota", failure, ""},
		{"an error and no condition", func(steps.Condition) (steps.Condition, error) { return steps.Condition{}, failure }, steps.ConditionError, "no quota", failure, ""},
		{"a very long error", func(c steps.Condition) (steps.Condition, error) {
			return c, fmt.Errorf("%w %s", failure, strings.Repeat("x", 5000))
		}, steps.ConditionError, "no quota", failure, ""},
		{"a panic", func(steps.Condition) (steps.Condition, error) { panic("boom") }, steps.ConditionError, "the task panicked: boom", nil, "boom"},
		{"not released", func(c steps.Condition) (steps.Condition, error) {
			c.Status = steps.ConditionLocked
			return c, nil
		}, steps.ConditionError, "not released", steps.LockNotReleasedErr, ""},
		{"another type", func(c steps.Condition) (steps.Condition, error) {
			c.Type, c.Status = "Other", steps.ConditionCompleted
			return c, nil
		}, steps.ConditionError, "Other", steps.LockNotReleasedErr, ""},
		{"a transient error", func(c steps.Condition) (steps.Condition, error) {
			return c, fmt.Errorf("busy: %w", result.NewWaiting(failure, "Busy", wait))
		}, steps.ConditionInitialized, "busy", failure, ""},
		{"an error that the option declares as transient", func(c steps.Condition) (steps.Condition, error) {
			return c, errors.New("throttled")
		}, steps.ConditionInitialized, "throttled", nil, "throttled"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(stored())
			b := read(t, s.direct)
			lock := steps.NewLock(b, s, step, steps.WithTransient(func(err error) bool { return err.Error() == "throttled" }))
			err := lock.Execute(t.Context(), tc.task)
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error: %v", err)
			}
			wantStep(t, s, tc.status, tc.reason)
			// None of these is the end: the next task runs.
			b = read(t, s.direct)
			if err := steps.NewLock(b, s, step).Execute(t.Context(), makeBucket(b)); err != nil {
				t.Errorf("the next task: %v", err)
			}
			wantStep(t, s, steps.ConditionCreated, "Bucket Created")
		})
	}
}

func TestACancelledReconcileReleasesTheLock(t *testing.T) {
	s := newServer(stored())
	b := read(t, s.direct)
	ctx, cancel := context.WithCancel(t.Context())
	err := steps.NewLock(b, s, step).ExecuteContext(ctx, func(ctx context.Context, c steps.Condition) (steps.Condition, error) {
		cancel()
		return c, ctx.Err()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	wantStep(t, s, steps.ConditionInitialized, "canceled")

	// A task that is done nevertheless is done.
	b = read(t, s.direct)
	ctx, cancel = context.WithCancel(t.Context())
	if err := steps.NewLock(b, s, step).Execute(ctx, func(c steps.Condition) (steps.Condition, error) {
		cancel()
		return makeBucket(b)(c)
	}); err != nil {
		t.Errorf("error: %v", err)
	}
	wantStep(t, s, steps.ConditionCreated, "")
}
