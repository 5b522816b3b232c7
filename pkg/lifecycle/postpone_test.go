// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/widget"
)

// newPostponing returns a loop that postpones the status, with a watch that shows what is on the server.
func newPostponing(t *testing.T) (b *bench, j *assessing, shown *func() (string, bool)) {
	t.Helper()
	b, j = newAssessing(t, &handler{}, claimed)
	show := func() (string, bool) { return b.read().ResourceVersion, true }
	b.options.Version = func(context.Context, client.ObjectKey) (string, bool) { return show() }
	var err error
	if j.sessions, err = session.New(b.options); err != nil {
		t.Fatal(err)
	}
	j.postpone = time.Hour
	return b, j, &show
}

func TestAPostponedStatusCostsNeitherAWriteNorARead(t *testing.T) {
	b, j, _ := newPostponing(t)
	if after := b.mustReconcile(); after <= 0 || after > time.Hour {
		t.Errorf("it is reconciled again after %s", after)
	}
	b.wantRequests("get")
	j.postpone = 0
	b.mustReconcile()
	b.wantRequests("patch status")
	b.wantReady(yes, "AllWell", "as assessed")
	b.mustReconcile()
	b.wantRequests("get") // it is not postponed any more
}

func TestAStatusIsPostponedOnlyForALimitedTime(t *testing.T) {
	b, j, _ := newPostponing(t)
	b.mustReconcile()
	b.mustReconcile()
	b.wantRequests()
	j.postpone = time.Nanosecond // which has passed since the first
	b.mustReconcile()
	b.wantRequests("patch status")
}

func TestASessionGoesOnFromWhatItsPredecessorHasWritten(t *testing.T) {
	b, j, _ := newPostponing(t)
	j.apply = func(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
		if len(w.Status.Record) > 0 {
			return result.Success, nil
		}
		w.Status.Record = []widget.Item{{Name: "pump"}}
		return result.Success, commit(ctx)
	}
	b.mustReconcile()
	b.wantRequests("get", "patch status")
	b.mustReconcile()
	b.wantRequests()
}

func TestWhatAnotherClientChangedIsReadAndIsNotPostponedAgain(t *testing.T) {
	for name, change := range map[string]func(b *bench, shown *func() (string, bool)){
		"the object changed": func(b *bench, _ *func() (string, bool)) {
			b.update(func(w *widget.Widget) { w.Spec.Size++ })
		},
		"the watch shows nothing":        func(_ *bench, shown *func() (string, bool)) { *shown = func() (string, bool) { return "", false } },
		"the watch shows something else": func(_ *bench, shown *func() (string, bool)) { *shown = func() (string, bool) { return "1", true } },
	} {
		t.Run(name, func(t *testing.T) {
			b, j, shown := newPostponing(t)
			b.mustReconcile()
			change(b, shown)
			b.mustReconcile()
			b.wantRequests("get", "patch status")
			b.mustReconcile()
			if diff := cmp.Diff([]bool{false, true, false}, j.lost); diff != "" {
				t.Errorf("sessions that find the status lost, -want +got:\n%s", diff)
			}
		})
	}
}

func TestWithoutAWatchNothingIsPostponed(t *testing.T) {
	b, _, shown := newPostponing(t)
	*shown = func() (string, bool) { return "", false }
	b.mustReconcile()
	b.wantRequests("get", "patch status")
}
