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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// attempts makes attempts at the step and collects their keys.
type attempts struct {
	*testing.T
	server *wire.Server
	commit bool
	keys   []string
}

// make is one attempt, by a process of its own.
func (a *attempts) make(task steps.Task) error {
	a.Helper()
	b := read(a.T, a.server.Direct)
	throttled := func(err error) bool { return err.Error() == "throttled" }
	options := []steps.LockOption{steps.WithHolder("pod"), steps.WithProcess(steps.NewProcess()), steps.WithTransient(throttled)}
	if a.commit {
		helper := check.Must(patch.NewHelper(b, a.server))(a)
		options = append(options, steps.WithCommit(func(ctx context.Context) error { return helper.Commit(ctx, b) }))
	}
	lock := steps.NewLock(b, a.server, step, options...)
	return lock.Execute(a.Context(), func(c steps.Condition) (steps.Condition, error) {
		key := lock.IdempotencyKey(c)
		if record := read(a.T, a.server.Direct).Status.Steps.FindType(step).Lock; record.AttemptKey != key {
			a.Errorf("on record is the key %q, in use %q", record.AttemptKey, key)
		}
		a.keys = append(a.keys, key)
		return task(c)
	})
}

func (a *attempts) succeed() {
	a.Helper()
	if err := a.make(func(c steps.Condition) (steps.Condition, error) {
		c.Status = steps.ConditionCreated
		return c, nil
	}); err != nil {
		a.Error(err)
	}
}

// wantKeys checks which of the keys are the same: equal letters for equal keys.
func (a *attempts) wantKeys(want string) {
	a.Helper()
	letters, got := map[string]rune{}, ""
	for _, key := range a.keys {
		if _, known := letters[key]; !known {
			letters[key] = rune('a' + len(letters))
		}
		got += string(letters[key])
	}
	if got != want {
		a.Errorf("keys %s, want %s: %v", got, want, a.keys)
	}
}

func panics(steps.Condition) (steps.Condition, error) { panic("after the creation") }

func TestTheKeyOutlivesEveryEndButSuccess(t *testing.T) {
	fails := func(err error) func(*wire.Server) steps.Task {
		return func(*wire.Server) steps.Task {
			return func(c steps.Condition) (steps.Condition, error) { return c, err }
		}
	}
	returns := func(change func(*steps.Condition)) func(*wire.Server) steps.Task {
		return func(*wire.Server) steps.Task {
			return func(c steps.Condition) (steps.Condition, error) { change(&c); return c, nil }
		}
	}
	busy := errors.New("busy")
	for name, tc := range map[string]struct {
		end    func(*wire.Server) steps.Task
		want   steps.ConditionStatus
		reason string // of the step, and a part of the error
	}{
		"an error":              {fails(errors.New("connection reset by peer")), steps.ConditionError, "connection reset by peer"},
		"a long error":          {fails(fmt.Errorf("busy %s", strings.Repeat("x", 5000))), steps.ConditionError, "busy xxx"},
		"a panic":               {func(*wire.Server) steps.Task { return panics }, steps.ConditionError, "the task panicked: after the creation"},
		"a warning":             {fails(result.NewError(errors.New("503"), result.SeverityWarning, "ServiceFailed")), steps.ConditionError, "503"},
		"a conflict":            {fails(fmt.Errorf("commit: %w", patch.ErrConflict)), steps.ConditionInitialized, "commit"},
		"not now":               {fails(fmt.Errorf("enter: %w", &result.RequeueError{After: time.Second, Err: busy})), steps.ConditionInitialized, "enter"},
		"a wait":                {fails(fmt.Errorf("enter: %w", result.NewWaiting(busy, "Busy", time.Second))), steps.ConditionInitialized, "enter: busy"},
		"transient by option":   {fails(errors.New("throttled")), steps.ConditionInitialized, "throttled"},
		"the task's own Error":  {returns(func(c *steps.Condition) { c.Status = steps.ConditionError }), steps.ConditionError, ""},
		"a condition made anew": {returns(func(c *steps.Condition) { *c = steps.Condition{Type: step, Status: steps.ConditionError} }), steps.ConditionError, ""},
		"still locked":          {returns(func(c *steps.Condition) { c.Status = steps.ConditionLocked }), steps.ConditionError, "not released"},
		"another type":          {returns(func(c *steps.Condition) { c.Type = "b" }), steps.ConditionError, `"b" instead of`},
		"a status that the server refuses": {func(s *wire.Server) steps.Task {
			return func(c steps.Condition) (steps.Condition, error) {
				first := true
				s.Before = func(request string) error {
					if request != "patch status" || !first {
						return nil
					}
					first = false
					return apierrors.NewInvalid(schema.GroupKind{Kind: "Bucket"}, "a", nil)
				}
				c.Status = steps.ConditionCreated
				return c, nil
			}
		}, steps.ConditionError, "the status that the task left was refused"},
	} {
		for _, commit := range []bool{false, true} {
			if commit && name == "a status that the server refuses" {
				continue // the refused request is the commit's, and the next one succeeds
			}
			t.Run(fmt.Sprintf("%s, commit %t", name, commit), func(t *testing.T) {
				a := &attempts{T: t, server: newServer(stored()), commit: commit}
				for range 3 {
					err := a.make(tc.end(a.server))
					a.server.Before = nil
					if (err == nil) != (tc.reason == "") || err != nil && !strings.Contains(err.Error(), tc.reason) {
						t.Errorf("error: %v", err)
					}
					wantStep(t, a.server, tc.want, tc.reason)
				}
				a.succeed()
				if got := read(t, a.server.Direct).Status.Steps.FindType(step); got.AttemptKey != "" {
					t.Errorf("after success: %+v", got)
				}
				a.succeed()
				a.wantKeys("aaaab")
			})
		}
	}
}

func TestTheKeyOutlivesACrashOfTheAttemptAfterAnError(t *testing.T) {
	a := &attempts{T: t, server: newServer(stored())}
	failure := func(c steps.Condition) (steps.Condition, error) { return c, errors.New("no answer") }
	_ = a.make(failure)
	_ = a.make(func(c steps.Condition) (steps.Condition, error) {
		a.server.Before = func(string) error { return apierrors.NewForbidden(schema.GroupResource{}, "a", nil) }
		return c, errors.New("the process has crashed")
	})
	a.server.Before = nil
	if !read(t, a.server.Direct).Status.Steps.TypeHasStatus(step, steps.ConditionLocked) {
		t.Error("it is not locked")
	}
	_ = a.make(failure)
	a.succeed()
	a.wantKeys("aaaa")
}
