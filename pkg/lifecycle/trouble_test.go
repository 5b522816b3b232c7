// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

func TestPanicsAreContained(t *testing.T) {
	boom := func() { panic("boom") }
	act := func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) { boom(); return 0, nil }
	for name, tc := range map[string]struct {
		h        *handler
		deleting bool
	}{
		"Claim":          {h: &handler{claim: func(context.Context, *widget.Widget) error { boom(); return nil }}},
		"CreateOrUpdate": {h: &handler{apply: act}},
		"UpdateStatus":   {h: &handler{suspended: func() bool { return true }, look: func(context.Context, *widget.Widget) error { boom(); return nil }}},
		"Suspended":      {h: &handler{suspended: func() bool { boom(); return false }}},
		"Orphaned":       {h: &handler{orphaned: func() bool { boom(); return false }}},
		"Delete":         {h: &handler{remove: act}, deleting: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, tc.h, claimed)
			if tc.deleting {
				b.delete()
			}
			check.Fails(t, check.ErrorOf(b.reconcile()), "boom")
			b.wantReady(no, "Error", "the handler panicked: boom")
		})
	}
	t.Run("ForgetObject", func(t *testing.T) {
		b := newBench(t, &handler{finished: boom}, claimed)
		b.delete()
		if _, err := b.reconcile(); err != nil || b.read() != nil {
			t.Errorf("the object is gone all the same: %v", err)
		}
	})
	t.Run("an error that panics", func(t *testing.T) {
		if _, err := newBench(t, &handler{apply: returns(result.Empty, evil{})}, claimed).reconcile(); err == nil {
			t.Error("the error is lost")
		}
	})
	t.Run("an error that is a nil pointer", func(t *testing.T) {
		b := newBench(t, &handler{apply: returns(result.Empty, (*result.Stalling)(nil))}, claimed)
		check.Fails(t, check.ErrorOf(b.reconcile()), "nil pointer")
		b.wantReady(no, "Error", "the handler returned an error of type *result.Stalling that is a nil pointer; return nil where there is no error")
	})
}

type evil struct{}

func (evil) Error() string { panic("boom") }

// changedMeanwhile says before every Commit that a user wants something else.
func changedMeanwhile(b *bench) func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
	return func(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
		b.update(func(w *widget.Widget) { w.Generation++ })
		w.Status.Phase = "Working"
		if err := commit(ctx); err != nil {
			return result.Empty, errors.Join(errors.New("cannot start"), err)
		}
		b.Error("the commit succeeded on a stale object")
		return result.Success, nil
	}
}

func TestAConflictEndsTheReconcileWithoutAVerdict(t *testing.T) {
	h := &handler{}
	b := newBench(t, h, claimed)
	h.apply = changedMeanwhile(b)
	for _, want := range []time.Duration{50 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond} {
		out, err := b.reconcile()
		if err != nil || out != (reconcile.Result{RequeueAfter: want}) {
			t.Errorf("returned %v, %v; want %s", out, err, want)
		}
		b.wantRequests("get", "patch status", "get")
	}
	if w := b.read(); w.Status.Phase != "" || len(w.Status.Conditions) != 0 || len(b.recorder.Events) != 0 {
		t.Errorf("something was written: %+v", w.Status)
	}
	h.apply = nil
	if out, err := b.reconcile(); err != nil || out.RequeueAfter != interval {
		t.Errorf("returned %v, %v", out, err)
	}
	h.apply = changedMeanwhile(b)
	if out, _ := b.reconcile(); out.RequeueAfter != 50*time.Millisecond {
		t.Errorf("after a success the delay starts anew, not with %s", out.RequeueAfter)
	}
}

func TestAnAnswerAboutTheObjectItselfEndsTheReconcileQuietly(t *testing.T) {
	own, others := schema.GroupResource{Group: widget.GroupVersion.Group, Resource: "widgets"}, schema.GroupResource{Group: "apps", Resource: "deployments"}
	again := reconcile.Result{RequeueAfter: 50 * time.Millisecond}
	for name, tc := range map[string]struct {
		err   error
		quiet bool
		want  reconcile.Result
	}{
		"it has changed":            {err: fmt.Errorf("write the spec: %w", apierrors.NewConflict(own, "a", errors.New("no"))), quiet: true, want: again},
		"it is gone":                {err: apierrors.NewNotFound(own, "a"), quiet: true},
		"another object is gone":    {err: apierrors.NewNotFound(own, "b")},
		"another type is gone":      {err: apierrors.NewNotFound(others, "a")},
		"its type is not served":    {err: apierrors.NewGenericServerResponse(http.StatusNotFound, "patch", own, "a", "404 page not found", 0, true)},
		"another object changed":    {err: apierrors.NewConflict(others, "a", errors.New("no"))},
		"something else has failed": {err: errors.Join(apierrors.NewConflict(own, "a", errors.New("no")), errors.New("refused"))},
		"it has a meaning":          {err: result.NewError(apierrors.NewNotFound(own, "a"), result.SeverityWarning, "Lost")},
	} {
		for _, deleting := range []bool{false, true} {
			b := newBench(t, &handler{apply: returns(result.Empty, tc.err), remove: returns(result.Empty, tc.err)}, claimed)
			if deleting {
				b.delete()
			}
			out, err := b.reconcile()
			if written := len(b.read().Status.Conditions) > 0; (err == nil) != tc.quiet || tc.quiet && out != tc.want || written == tc.quiet {
				t.Errorf("%s (deleting: %t): %v, %v; a status was written: %t", name, deleting, out, err, written)
			}
		}
	}
}

func TestAHandlerThatGetsNowhereIsSlowedDown(t *testing.T) {
	n := 0
	h := &handler{apply: returns(result.Requeue, nil)}
	b := newBench(t, h, claimed)
	var last time.Duration
	for range 12 {
		out, err := b.reconcile()
		if err != nil || out.RequeueAfter < max(last, result.RequeueDelay) {
			t.Fatalf("returned %v, %v after %s", out, err, last)
		}
		last = out.RequeueAfter
	}
	check.SameNamed(t, "in the end it comes after", 10*time.Second, last)
	h.apply = func(_ context.Context, w *widget.Widget, _ lifecycle.Commit) (result.Result, error) {
		n++
		w.Status.Phase = strings.Repeat("x", n)
		return result.Requeue, nil
	}
	for range 3 {
		if out, err := b.reconcile(); err != nil || out.RequeueAfter != result.RequeueDelay {
			t.Errorf("with progress: %v, %v", out, err)
		}
	}
}

func TestAShutdownIsNoStatus(t *testing.T) {
	h := &handler{}
	b := newBench(t, h, claimed)
	b.mustReconcile()
	ctx, cancel := context.WithCancel(t.Context())
	h.apply = func(ctx context.Context, w *widget.Widget, _ lifecycle.Commit) (result.Result, error) {
		w.Status.Record = []widget.Item{{Name: "done so far"}}
		cancel()
		return result.Empty, ctx.Err()
	}
	if _, err := b.passWith(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error: %v", err)
	}
	b.wantReady(yes, "Ready", "everything is as it should be")
	check.SameNamed(t, "what was done is not on record", 1, len(b.read().Status.Record))
}

func TestAnOutdatedDefinitionStallsTheObject(t *testing.T) {
	h := &handler{}
	b := newBench(t, h, nil)
	acted := false
	h.apply = func(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
		w.Status.Record = []widget.Item{{Name: "pump"}}
		if err := commit(ctx); err != nil {
			return result.Empty, err
		}
		acted = true
		return result.Success, nil
	}
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 1, Finalizers: []string{finalizer}}}
	b.server = widget.NewServerWithoutStatus(w)
	b.use(h)
	for range 2 {
		out, err := b.reconcile()
		if err != nil || out.RequeueAfter <= 0 || out.RequeueAfter > 15*time.Second {
			t.Errorf("returned %v, %v", out, err)
		}
	}
	if acted {
		t.Error("the handler acted although nothing was on record")
	}
	b.wantReady(no, "CRDOutdated", "commit Widget ns/a: its type has no status subresource: enable it in the CustomResourceDefinition")
	check.SameNamed(t, "events in two reconciles", 1, len(b.recorder.Events))
	b.use(h)
	b.mustReconcile()
	check.SameNamed(t, "events after a restart of the operator", 1, len(b.recorder.Events))
}

func TestAnOutdatedDefinitionIsReportedOnceInADeletion(t *testing.T) {
	h := &handler{remove: func(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
		w.Status.Phase = "Leaving"
		return result.Empty, commit(ctx)
	}}
	b := newBench(t, h, nil)
	b.server = widget.NewServerWithoutStatus(&widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 1, Finalizers: []string{finalizer}}})
	b.use(h)
	b.delete()
	for range 3 {
		b.mustReconcile()
	}
	check.SameNamed(t, "events of the beginning and of the definition", 2, len(b.recorder.Events))
}
