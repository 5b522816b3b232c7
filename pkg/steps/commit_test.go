// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/steps"
)

// committing returns a bucket, its patch helper, and the commit of the two.
func committing(t *testing.T, s *story) (*Bucket, *patch.Helper, func(context.Context) error) {
	t.Helper()
	b := s.bucket()
	helper, err := patch.NewHelper(b, s.client)
	if err != nil {
		t.Fatal(err)
	}
	return b, helper, func(ctx context.Context) error { return helper.Commit(ctx, b) }
}

func TestALockWritesWithTheCommitOfTheReconcile(t *testing.T) {
	s := newStory(t)
	b, helper, commit := committing(t, s)
	err := steps.NewLock(b, s.client, step, steps.WithCommit(commit)).Execute(t.Context(), func(c steps.Condition) (steps.Condition, error) {
		if !s.bucket().Status.Steps.TypeHasStatus(step, steps.ConditionLocked) {
			t.Error("it is not locked while the task runs")
		}
		return makeBucket(b)(c)
	})
	if err != nil || helper.Writes() != 2 {
		t.Fatalf("%d writes, %v", helper.Writes(), err)
	}
	b.Status.Phase = "Done"
	if err := helper.Patch(t.Context(), b); err != nil {
		t.Errorf("the write at the end of the reconcile: %v", err)
	}
	after := s.bucket()
	if d := cmp.Diff(b.Status, after.Status); d != "" || !after.Status.Steps.TypeHasStatus(step, steps.ConditionCreated) || after.Status.BucketName != "b-1" {
		t.Errorf("%+v (-memory +server): %s", after.Status, d)
	}
}
