// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

const interval = 5 * time.Minute

var (
	builder = result.AlwaysRequeueResultBuilder{RequeueAfter: interval}
	errAny  = errors.New("connection refused")
)

// end is what a reconcile leaves, of an object that was Reconciling before. Beside an error
// the delay does not count, because the controller ignores it.
type end struct {
	After                time.Duration // soon: the field's Requeue
	Returned             bool
	Reconciling, Stalled bool
	Observed             bool
}

const soon = result.RequeueDelay

// TestTheTruthTable is the table of the source-controller of Flux 2.x, row by row, with the
// builder that always requeues. Where ours is another end, it says why.
func TestTheTruthTable(t *testing.T) {
	e, r, s := result.Empty, result.Requeue, result.Success
	stalling, waiting := result.NewStalling(errAny, "Invalid"), result.NewWaiting(errAny, "Dependency", time.Second)
	forgotten := result.NewWaiting(errAny, "Dependency", 0)
	ignored, generic := &result.Generic{Ignore: true, Err: errAny}, result.NewGeneric(errAny, "Network")
	wrapped := func(err error) error { return fmt.Errorf("apply: %w", err) }

	failed := end{Returned: true, Reconciling: true}
	stalled := end{After: interval, Stalled: true, Observed: true}
	waits := end{After: time.Second, Reconciling: true}
	const (
		overrules = "an error overrules the Result"
		wrapping  = "context is found through wrapping"
		notFinal  = "what is stalled comes again after the interval"
	)
	rows := []struct {
		err   error
		res   result.Result
		field end
		ours  end
		why   string
	}{
		{nil, s, end{After: interval, Observed: true}, end{}, ""},
		{nil, r, end{After: soon, Reconciling: true}, end{}, ""},
		{nil, e, end{Reconciling: true, Observed: true}, end{}, ""},
		{stalling, e, end{Stalled: true, Observed: true}, stalled, notFinal},
		{stalling, s, failed, stalled, overrules},
		{stalling, r, failed, stalled, overrules},
		{waiting, e, waits, end{}, ""},
		{waiting, r, waits, end{}, ""},
		{waiting, s, waits, end{}, ""},
		{forgotten, e, end{After: interval, Reconciling: true}, end{}, ""},
		{forgotten, r, end{After: interval, Reconciling: true}, end{}, ""},
		{forgotten, s, end{After: interval, Reconciling: true}, end{}, ""},
		{ignored, e, end{After: interval, Observed: true}, end{}, ""},
		{ignored, r, end{After: interval, Observed: true}, end{}, ""},
		{ignored, s, end{After: interval, Observed: true}, end{}, ""},
		{generic, e, failed, end{}, ""},
		{generic, r, failed, end{}, ""},
		{generic, s, failed, end{}, ""},
		{errAny, e, failed, end{}, ""},
		{errAny, r, failed, end{}, ""},
		{errAny, s, failed, end{}, ""},
		{wrapped(stalling), e, failed, stalled, wrapping},
		{wrapped(stalling), r, failed, stalled, wrapping},
		{wrapped(stalling), s, failed, stalled, wrapping},
		{wrapped(waiting), e, failed, waits, wrapping},
		{wrapped(waiting), r, failed, waits, wrapping},
		{wrapped(waiting), s, failed, waits, wrapping},
		{wrapped(ignored), e, failed, end{After: interval, Observed: true}, wrapping},
		{wrapped(ignored), r, failed, end{After: interval, Observed: true}, wrapping},
		{wrapped(ignored), s, failed, end{After: interval, Observed: true}, wrapping},
		{wrapped(generic), e, failed, end{}, ""},
		{errors.Join(waiting, errAny), e, failed, end{}, ""},
	}
	for i, row := range rows {
		t.Run(fmt.Sprintf("%d %T %s", i+1, row.err, row.res), func(t *testing.T) {
			want := row.field
			if row.why != "" {
				want = row.ours
				if cmp.Equal(row.field, row.ours) {
					t.Errorf("no difference, although it says: %s", row.why)
				}
			}
			reconciling := func(w *widget.Widget) { conditions.MarkReconciling(w, "NewGeneration", "") }
			check.EqualNamed(t, "the end", want, endOf(t, reconciling, row.res, row.err))
			// Of an object that was Stalled before, all but a stall ends the stall.
			want.Reconciling = false
			stalled := func(w *widget.Widget) { conditions.MarkStalled(w, "Invalid", "old") }
			check.EqualNamed(t, "the end of what was stalled", want, endOf(t, stalled, row.res, row.err))
		})
	}
}

func endOf(t *testing.T, before func(*widget.Widget), res result.Result, err error) end {
	t.Helper()
	w := &widget.Widget{}
	before(w)
	options, out, returned := summarize.ComputeReconcileResult(w, res, err, builder)
	var resolved patch.HelperOptions
	for _, option := range options {
		option.ApplyToHelper(&resolved)
	}
	if returned != nil && !errors.Is(returned, errAny) {
		t.Errorf("returned another error: %v", returned)
	}
	return end{
		After: out.RequeueAfter, Returned: returned != nil, Observed: resolved.IncludeStatusObservedGeneration,
		Reconciling: conditions.IsReconciling(w), Stalled: conditions.IsStalled(w),
	}
}
