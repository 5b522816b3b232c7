// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/widget"
)

// failing is a handler with a CreateOrUpdate that returns the error.
func failing(err *error) *handler {
	return &handler{apply: func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
		return result.Success, *err
	}}
}

func TestEachErrorShowsItsSeverityAndRequeuesAsItsClassSays(t *testing.T) {
	for _, tc := range []struct {
		severity             result.Severity
		ready                metav1.ConditionStatus
		reconciling, stalled bool
		returned             bool
		delays               []time.Duration
	}{
		{result.SeverityInfo, unknown, true, false, false, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}},
		{result.SeverityWarning, no, true, false, true, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}},
		{result.SeverityError, no, false, true, false, []time.Duration{interval, interval, interval}},
	} {
		t.Run(string(tc.severity), func(t *testing.T) {
			var cause error = result.NewError(errors.New("no answer"), tc.severity, "NoAnswer")
			b := newBench(t, failing(&cause), claimed)
			limiter := lifecycle.NewRateLimiter()
			b.options.RateLimiter = limiter
			b.rebuild(b.handler)
			request := reconcile.Request{NamespacedName: key}
			for range 2 { // the second time after a success, and the count starts again
				for i, want := range tc.delays {
					out, err := b.reconcile()
					got := out.RequeueAfter
					if err != nil {
						got = limiter.When(request)
					}
					if (err != nil) != tc.returned || got != want {
						t.Errorf("reconcile %d: returned %v, %v; comes after %s, want %s", i, out, err, got, want)
					}
				}
				b.wantReady(tc.ready, "NoAnswer", "no answer")
				if w := b.read(); conditions.IsReconciling(w) != tc.reconciling || conditions.IsStalled(w) != tc.stalled {
					t.Errorf("conditions: %+v", w.Status.Conditions)
				}
				mended := cause
				cause = nil
				if out, err := b.reconcile(); err != nil || out.RequeueAfter != interval {
					t.Errorf("returned %v, %v", out, err)
				}
				b.wantReady(yes, "Ready", "everything is as it should be")
				cause = mended
			}
		})
	}
}

func TestAChangeOfTheObjectResetsItsDelays(t *testing.T) {
	var cause error = result.NewError(errors.New("no answer"), result.SeverityInfo, "NoAnswer")
	b := newBench(t, failing(&cause), claimed)
	for _, want := range []time.Duration{time.Second, 2 * time.Second} {
		if out, _ := b.reconcile(); out.RequeueAfter != want {
			t.Errorf("comes after %s, want %s", out.RequeueAfter, want)
		}
	}
	b.update(func(w *widget.Widget) { w.Generation++ })
	if out, _ := b.reconcile(); out.RequeueAfter != time.Second {
		t.Errorf("comes after %s", out.RequeueAfter)
	}
}

// TestNoStateIsFinal: whatever comes out, the object comes again by the requeue
// interval or through the controller's rate limiter; only one that its handler calls
// suspended waits for a change.
func TestNoStateIsFinal(t *testing.T) {
	for _, res := range []result.Result{result.Empty, result.Requeue, result.Success} {
		for _, err := range []error{
			nil, errors.New("plain"), reconcile.TerminalError(errors.New("terminal")),
			result.NewStalling(errors.New("stalled"), ""), result.NewWaiting(errors.New("waiting"), "", 0),
			&result.Generic{Ignore: true, Err: errors.New("ignored")},
			result.NewError(errors.New("info"), result.SeverityInfo, ""),
			result.NewError(errors.New("warning"), result.SeverityWarning, ""),
			result.NewError(errors.New("error"), result.SeverityError, ""),
		} {
			for _, deleting := range []bool{false, true} {
				outcome := returns(res, err)
				b := newBench(t, &handler{apply: outcome, remove: outcome}, claimed)
				if deleting {
					b.delete()
				}
				out, passErr := b.reconcile()
				if gone := b.read() == nil; gone != (deleting && res == result.Success && err == nil) {
					t.Errorf("%s, %v: gone: %t", res, err, gone)
				} else if !gone && passErr == nil && (out.RequeueAfter <= 0 || out.RequeueAfter > interval) {
					t.Errorf("%s, %v, deleting %t: comes after %s", res, err, deleting, out.RequeueAfter)
				}
			}
		}
	}
}

func TestObjectsAreNotRequeuedInStep(t *testing.T) {
	b := newBench(t, &handler{}, claimed)
	b.options.Jitter = 0
	b.rebuild(b.handler)
	seen := map[time.Duration]bool{}
	for range 20 {
		out, err := b.reconcile()
		if err != nil || out.RequeueAfter > interval || out.RequeueAfter < interval*9/10 {
			t.Errorf("returned %v, %v", out, err)
		}
		seen[out.RequeueAfter] = true
	}
	if len(seen) < 2 {
		t.Error("they all come after the same time")
	}
}
