// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// make is a task that makes something and says so.
func makeBucket(b *Bucket) steps.Task {
	return func(c steps.Condition) (steps.Condition, error) {
		b.Status.BucketName = "b-1"
		c.Status, c.Reason = steps.ConditionCreated, "Bucket Created"
		return c, nil
	}
}

// wantStep checks the step on the server, which must not be locked.
func wantStep(t *testing.T, s *wire.Server, status steps.ConditionStatus, reason string) *Bucket {
	t.Helper()
	b := read(t, s.Direct)
	c := b.Status.Steps.FindType(step)
	if c == nil || c.Status != status || !strings.Contains(c.Reason, reason) || c.Lock != nil {
		t.Errorf("the step is %+v, want %s, %q", c, status, reason)
	}
	return b
}

// TestALockIsOneWriteBeforeAndOneAfterTheTask writes by itself and with the commit of the reconcile.
func TestALockIsOneWriteBeforeAndOneAfterTheTask(t *testing.T) {
	for _, commits := range []bool{false, true} {
		s := newServer(stored())
		b := read(t, s.Direct)
		helper, err := patch.NewHelper(b, s)
		check.NoError(t, err)
		var options []steps.LockOption
		if commits {
			options = append(options, steps.WithCommit(func(ctx context.Context) error { return helper.Commit(ctx, b) }))
		}
		b.Status.Phase = "set before the lock"
		lock := steps.NewLock(b, s, step, options...)
		task := func(c steps.Condition) (steps.Condition, error) {
			if c.Status != steps.ConditionInitialized || c.Lock != nil {
				t.Errorf("the task sees %+v", c)
			}
			seen := read(t, s.Direct)
			if locked := seen.Status.Steps.FindType(step); locked == nil || locked.Status != steps.ConditionLocked || locked.Lock.Holder == "" {
				t.Errorf("while the task runs the step is %+v", locked)
			}
			if seen.Status.Phase != "set before the lock" || !b.Status.Steps.TypeHasStatus(step, steps.ConditionLocked) {
				t.Errorf("on the server %+v, in memory %+v", seen.Status, b.Status)
			}
			return makeBucket(b)(c)
		}
		check.NoError(t, lock.Execute(t.Context(), task))
		check.EqualNamed(t, "requests", []string{"patch status", "patch status"}, s.Requests())
		after := wantStep(t, s, steps.ConditionCreated, "Bucket Created")
		if after.Status.BucketName != "b-1" {
			t.Errorf("what the task changed is not written: %+v", after.Status)
		}
		if d := cmp.Diff(after.Status, b.Status); d != "" || after.ResourceVersion != b.ResourceVersion {
			t.Errorf("in memory (-server +memory): %s", d)
		}
		if c := lock.Condition(); c.Status != steps.ConditionInitialized {
			t.Errorf("the lock's condition is not the one at its creation: %+v", c)
		}
		b.Status.Phase = "after"
		if commits {
			err = helper.Patch(t.Context(), b)
		} else {
			err = s.Status().Update(t.Context(), b)
		}
		if err != nil {
			t.Errorf("a write after the lock: %v", err)
		}
	}
}

func TestAStaleObjectFailsBeforeTheTask(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*testing.T, *wire.Server)
	}{
		{"the step is done", func(t *testing.T, s *wire.Server) {
			fresh := read(t, s.Direct)
			check.NoError(t, steps.NewLock(fresh, s.Direct, step).Execute(t.Context(), makeBucket(fresh)))
		}},
		{"only a label is new", func(t *testing.T, s *wire.Server) {
			fresh := read(t, s.Direct)
			fresh.Labels = map[string]string{"a": "b"}
			check.NoError(t, s.Direct.Update(t.Context(), fresh))
		}},
		{"it is gone", func(t *testing.T, s *wire.Server) {
			check.NoError(t, s.Direct.Delete(t.Context(), read(t, s.Direct)))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(stored(steps.Condition{Type: "other", Status: steps.ConditionError}))
			stale := read(t, s.Direct)
			before := stale.DeepCopyObject()
			tc.change(t, s)
			err := steps.NewLock(stale, s, step).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
				t.Error("the task ran")
				return c, nil
			})
			if !errors.Is(err, patch.ErrConflict) || !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				t.Errorf("error: %v", err)
			}
			if d := cmp.Diff(before, stale.DeepCopyObject()); d != "" {
				t.Errorf("the object in memory changed: %s", d)
			}
		})
	}
}

func TestTheContextOfATaskEndsBeforeTheLease(t *testing.T) {
	s := newServer(stored())
	b := read(t, s.Direct)
	end := time.Now().Add(time.Hour)
	err := steps.NewLock(b, s, step, steps.WithLease(time.Hour)).ExecuteContext(t.Context(), func(ctx context.Context, c steps.Condition) (steps.Condition, error) {
		deadline, ok := ctx.Deadline()
		if !ok || !deadline.Before(end) || deadline.Before(end.Add(-time.Minute)) {
			t.Errorf("the context ends at %v, the lease at %v", deadline, end)
		}
		return makeBucket(b)(c)
	})
	check.NoError(t, err)
}

func TestErrorsOfTaskAndServerAreJoined(t *testing.T) {
	failure := errors.New("no quota")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "buckets"}, "a", errors.New("not for you"))
	s := newServer(stored())
	b := read(t, s.Direct)
	err := steps.NewLock(b, s, step).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
		s.Before = func(string) error { return forbidden }
		return c, failure
	})
	if !errors.Is(err, failure) || !apierrors.IsForbidden(err) || strings.Index(err.Error(), "not for you") > strings.Index(err.Error(), "no quota") {
		t.Errorf("error: %v", err)
	}
	// The lock stays on the server, but this process knows that no task is at work.
	s.Before = nil
	b = read(t, s.Direct)
	if !b.Status.Steps.TypeHasStatus(step, steps.ConditionLocked) {
		t.Fatal("it is not locked")
	}
	if err := steps.NewLock(b, s, step).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
		if c.Status != steps.ConditionInitialized {
			t.Errorf("the task sees %+v", c)
		}
		return makeBucket(b)(c)
	}); err != nil {
		t.Error(err)
	}
	wantStep(t, s, steps.ConditionCreated, "")
}

func TestALockThatIsHeld(t *testing.T) {
	s := newServer(stored())
	b := read(t, s.Direct)
	never := func(c steps.Condition) (steps.Condition, error) {
		t.Error("a second task ran")
		return c, nil
	}
	wantHeld := func(err error) {
		t.Helper()
		held, ok := errors.AsType[*steps.LockHeldError](err)
		if !ok || held.Type != step || held.Holder != "pod-1" || held.RetryAfter <= 0 || !errors.Is(err, steps.LockNotReleasedErr) {
			t.Fatalf("error: %v", err)
		}
		if v := result.Compute(result.Empty, err, nil); v.Outcome != result.Waited || v.Result.RequeueAfter != held.RetryAfter || v.Err != nil {
			t.Errorf("the verdict is %+v", v)
		}
	}
	err := steps.NewLock(b, s, step, steps.WithHolder("pod-1")).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
		wantHeld(steps.NewLock(read(t, s.Direct), s, step).Execute(t.Context(), never))
		other := steps.NewLock(read(t, s.Direct), s, step, steps.WithProcess(steps.NewProcess()), steps.WithHolder("pod-2"))
		wantHeld(other.Execute(t.Context(), never))
		// Another step of the same object is free.
		o := read(t, s.Direct)
		if err := steps.NewLock(o, s, "Other").Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
			c.Status = steps.ConditionCompleted
			return c, nil
		}); err != nil {
			t.Error(err)
		}
		return makeBucket(b)(c)
	})
	check.NoError(t, err)
	after := wantStep(t, s, steps.ConditionCreated, "")
	if !after.Status.Steps.TypeHasStatus("Other", steps.ConditionCompleted) || after.Status.BucketName != "b-1" {
		t.Errorf("after both: %+v", after.Status)
	}
}

func TestACancelledReconcileReleasesTheLock(t *testing.T) {
	s := newServer(stored())
	b := read(t, s.Direct)
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
	b = read(t, s.Direct)
	ctx, cancel = context.WithCancel(t.Context())
	if err := steps.NewLock(b, s, step).Execute(ctx, func(c steps.Condition) (steps.Condition, error) {
		cancel()
		return makeBucket(b)(c)
	}); err != nil {
		t.Errorf("error: %v", err)
	}
	wantStep(t, s, steps.ConditionCreated, "")
}
