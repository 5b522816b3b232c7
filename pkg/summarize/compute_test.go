// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize_test

import (
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/widget"
)

const interval = 5 * time.Minute

var (
	builder = result.AlwaysRequeueResultBuilder{RequeueAfter: interval}
	errAny  = errors.New("connection refused")
)

func TestComputeReconcileResult(t *testing.T) {
	reconciling := func(w *widget.Widget) { conditions.MarkReconciling(w, "NewGeneration", "") }
	stalled := func(w *widget.Widget) { conditions.MarkStalled(w, "Invalid", "old") }
	nothing := func(*widget.Widget) {}
	for _, tc := range []struct {
		name                   string
		before                 func(*widget.Widget)
		res                    result.Result
		err                    error
		after                  time.Duration
		returned               bool
		observed               bool
		isReconciling, isStall bool
	}{
		{"success", nothing, result.Success, nil, interval, false, true, false, false},
		{"success ends reconciling", reconciling, result.Success, nil, interval, false, true, false, false},
		{"success ends a stall", stalled, result.Success, nil, interval, false, true, false, false},
		{"requeue keeps reconciling", reconciling, result.Requeue, nil, result.RequeueDelay, false, false, true, false},
		{"requeue ends a stall", stalled, result.Requeue, nil, result.RequeueDelay, false, false, false, false},
		{"nothing to do", reconciling, result.Empty, nil, 0, false, true, true, false},
		{"stalling ends reconciling", reconciling, result.Empty, result.NewStalling(errAny, "Invalid"), interval, false, true, false, true},
		{"waiting keeps reconciling", reconciling, result.Empty, result.NewWaiting(errAny, "Dependency", time.Second), time.Second, false, false, true, false},
		{"waiting ends a stall", stalled, result.Empty, result.NewWaiting(errAny, "Dependency", time.Second), time.Second, false, false, false, false},
		{"an error keeps reconciling", reconciling, result.Empty, errAny, 0, true, false, true, false},
		{"an error ends a stall", stalled, result.Empty, errAny, 0, true, false, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &widget.Widget{}
			tc.before(w)
			options, out, err := summarize.ComputeReconcileResult(w, tc.res, tc.err, builder)
			if out != (reconcile.Result{RequeueAfter: tc.after}) || (err != nil) != tc.returned {
				t.Errorf("returned %v, %v", out, err)
			}
			var resolved patch.HelperOptions
			for _, option := range options {
				option.ApplyToHelper(&resolved)
			}
			if resolved.IncludeStatusObservedGeneration != tc.observed {
				t.Errorf("observed: %t", resolved.IncludeStatusObservedGeneration)
			}
			if conditions.IsReconciling(w) != tc.isReconciling || conditions.IsStalled(w) != tc.isStall {
				t.Errorf("conditions: %+v", w.Status.Conditions)
			}
		})
	}
}
