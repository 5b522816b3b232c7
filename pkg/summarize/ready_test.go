// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

func TestBiPolarity(t *testing.T) {
	verified := func(w *widget.Widget) { conditions.MarkTrue(w, "Verified", "Signed", "good") }
	unverified := func(w *widget.Widget) { conditions.MarkFalse(w, "Verified", "Unsigned", "bad") }
	unscanned := func(w *widget.Widget) { conditions.MarkFalse(w, "Scanned", "Virus", "worse") }
	failed := func(w *widget.Widget) { conditions.MarkTrue(w, "FetchFailed", "Dns", "no route") }
	reconciling := func(w *widget.Widget) { conditions.MarkReconciling(w, "NewGeneration", "") }
	for _, tc := range []struct {
		name     string
		has      []func(*widget.Widget)
		types    []string
		res      result.Result
		status   metav1.ConditionStatus
		reason   string
		returned string // the error
	}{
		{"false beats reconciling", []func(*widget.Widget){unverified, reconciling}, []string{"Verified"}, result.Requeue, "False", "Unsigned", ""},
		{"without the option reconciling hides it", []func(*widget.Widget){unverified, reconciling}, nil, result.Requeue, "False", "NewGeneration", ""},
		{"false beats another failure", []func(*widget.Widget){unverified, failed}, []string{"Verified"}, result.Requeue, "False", "Unsigned", ""},
		{"true does not", []func(*widget.Widget){verified, failed}, []string{"Verified"}, result.Requeue, "False", "Dns", ""},
		{"true is good news", []func(*widget.Widget){verified}, []string{"Verified"}, result.Success, "True", "Signed", ""},
		{"of two the first counts", []func(*widget.Widget){unverified, unscanned}, []string{"Scanned", "Verified"}, result.Requeue, "False", "Virus", ""},
		{"it is no success", []func(*widget.Widget){unscanned, verified}, []string{"Scanned"}, result.Success, "False", "Virus", "worse"},
		{"absent is nothing", nil, []string{"Scanned"}, result.Success, "True", "Ready", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, nil)
			for _, set := range tc.has {
				set(b.obj)
			}
			_, err := b.end(t, summarize.WithConditions(fetched), summarize.WithResultBuilder(builder),
				summarize.WithReconcileResult(tc.res), summarize.WithBiPolarityConditionTypes(tc.types...))
			check.SameNamed(t, "returned", tc.returned, message(err))
			ready := conditions.Get(b.obj, "Ready")
			if ready == nil || ready.Status != tc.status || ready.Reason != tc.reason {
				t.Errorf("Ready is %+v", ready)
			}
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestASummaryThatContradictsASuccessWins(t *testing.T) {
	for _, tc := range []struct {
		name     string
		has      func(*widget.Widget)
		reason   string
		returned bool
	}{
		{"a failure that is left over", func(w *widget.Widget) { conditions.MarkTrue(w, "FetchFailed", "Dns", "no route") }, "Dns", true},
		{"good news that is missing", func(w *widget.Widget) { conditions.MarkFalse(w, "Verified", "Unsigned", "") }, "Unsigned", true},
		{"a stall is what success ends", func(w *widget.Widget) { conditions.MarkStalled(w, "Invalid", "") }, "Ready", false},
		{"so is reconciling", func(w *widget.Widget) { conditions.MarkReconciling(w, "NewGeneration", "") }, "Ready", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, nil)
			tc.has(b.obj)
			out, err := b.end(t, summarize.WithConditions(fetched), summarize.WithResultBuilder(builder), summarize.WithReconcileResult(result.Success))
			if (err != nil) != tc.returned || (out.RequeueAfter == interval) == tc.returned {
				t.Errorf("returned %v, %v", out, err)
			}
			if generic, ok := errors.AsType[*result.Generic](err); ok != tc.returned || ok && generic.Reason != tc.reason {
				t.Errorf("error: %v", err)
			}
			b.load(t)
			if ready := conditions.Get(b.obj, "Ready"); ready.Reason != tc.reason || ready.Status == "True" == tc.returned {
				t.Errorf("Ready is %+v", ready)
			}
			if observed := b.obj.Status.ObservedGeneration == 4; observed == tc.returned {
				t.Errorf("observed generation %d", b.obj.Status.ObservedGeneration)
			}
		})
	}
	// A target of one's own is no verdict.
	b := newBench(t, nil)
	conditions.MarkFalse(b.obj, "Verified", "Unsigned", "")
	_, err := b.end(t, summarize.WithConditions(plain, summarize.Conditions{Target: "Trusted", Summarize: []string{"Verified"}}),
		summarize.WithResultBuilder(builder), summarize.WithReconcileResult(result.Success))
	if err != nil || !conditions.IsReady(b.obj) || !conditions.IsFalse(b.obj, "Trusted") {
		t.Errorf("%v, %+v", err, b.obj.Status.Conditions)
	}
}
