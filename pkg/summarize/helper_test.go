// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

var (
	key     = client.ObjectKey{Namespace: "ns", Name: "a"}
	fetched = summarize.Conditions{
		Target:           "Ready",
		Owned:            []string{"Ready", "Reconciling", "Stalled", "FetchFailed", "Verified"},
		Summarize:        []string{"FetchFailed", "Verified", "Stalled", "Reconciling"},
		NegativePolarity: []string{"FetchFailed", "Stalled", "Reconciling"},
	}
	plain = summarize.Conditions{Target: "Ready", Owned: []string{"Ready", "Reconciling", "Stalled"}}
)

// bench is a reconcile that is about to end.
type bench struct {
	server   *widget.Server
	obj      *widget.Widget
	patcher  *patch.Helper
	recorder *events.FakeRecorder
}

func newBench(t *testing.T, change func(*widget.Widget)) *bench {
	t.Helper()
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 4}}
	if change != nil {
		change(w)
	}
	b := &bench{server: widget.NewServer(w), obj: &widget.Widget{}, recorder: events.NewFakeRecorder(10)}
	b.load(t)
	return b
}

func (b *bench) load(t *testing.T) {
	t.Helper()
	b.obj = &widget.Widget{}
	check.NoError(t, b.server.Direct.Get(t.Context(), key, b.obj))
	b.patcher = check.Must(patch.NewHelper(b.obj, b.server))(t)
}

func (b *bench) end(t *testing.T, options ...summarize.Option) (reconcile.Result, error) {
	t.Helper()
	out, err := summarize.NewHelper(b.recorder, b.patcher).SummarizeAndPatch(t.Context(), b.obj, options...)
	if conditions.Has(b.obj, "Ready") { // otherwise it was not asked for
		conditionstest.Check(t, b.obj)
	}
	return out, err
}

func (b *bench) wantRequests(t *testing.T, want ...string) {
	t.Helper()
	if d := cmp.Diff(want, b.server.Requests(), cmpopts.EquateEmpty()); d != "" {
		t.Errorf("requests: %s", d)
	}
}

// TestReadyAgreesWithWhatIsReturned goes through all outcomes, with a Ready that
// is left over from the reconcile before. Where Ready becomes Unknown, Reconciling is added.
func TestReadyAgreesWithWhatIsReturned(t *testing.T) {
	const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown
	signed := func(w *widget.Widget) { conditions.MarkTrue(w, "Verified", "Signed", "") }
	reconciling := func(w *widget.Widget) { conditions.MarkReconciling(w, "NewGeneration", "") }
	offline := func(w *widget.Widget) { conditions.MarkTrue(w, "FetchFailed", "Dns", "") }
	waiting := result.NewWaiting(errAny, "Dependency", 0)
	for _, tc := range []struct {
		name       string
		conditions summarize.Conditions
		has        func(*widget.Widget)
		res        result.Result
		err        error
		status     metav1.ConditionStatus
		reason     string
		working    string // the reason of Reconciling
		observed   int64
	}{
		{"success without anything to summarise", plain, nil, result.Success, nil, yes, "Ready", "", 4},
		{"failure without anything to summarise", plain, nil, result.Empty, errAny, no, "Error", "", 0},
		{"stalling without anything to summarise", plain, nil, result.Empty, result.NewStalling(errAny, "Invalid"), no, "Invalid", "", 4},
		{"waiting without anything to summarise", plain, nil, result.Empty, waiting, unknown, "Dependency", "Dependency", 0},
		{"requeue without anything to summarise", plain, nil, result.Requeue, nil, unknown, "Processing", "Processing", 0},
		{"requeue, and the reconciler has said why", plain, reconciling, result.Requeue, nil, unknown, "Processing", "NewGeneration", 0},
		{"success with a summary", fetched, signed, result.Success, nil, yes, "Signed", "", 4},
		{"failure with a summary that says why", fetched, offline, result.Empty, errAny, no, "Dns", "", 0},
		{"failure with a summary from better times", fetched, signed, result.Empty, errAny, no, "Error", "", 0},
		{"waiting with a summary from better times", fetched, signed, result.Empty, waiting, unknown, "Dependency", "Dependency", 0},
		{"stalling is part of the summary", fetched, nil, result.Empty, result.NewStalling(errAny, "Invalid"), no, "Invalid", "", 4},
		{"reconciling is part of the summary", fetched, reconciling, result.Requeue, nil, no, "NewGeneration", "NewGeneration", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, func(w *widget.Widget) { conditions.MarkTrue(w, "Ready", "LeftOver", "") })
			if tc.has != nil {
				tc.has(b.obj)
			}
			_, err := b.end(t, summarize.WithConditions(tc.conditions), summarize.WithResultBuilder(builder),
				summarize.WithReconcileResult(tc.res), summarize.WithReconcileError(tc.err))
			if err != nil && !errors.Is(err, errAny) {
				t.Fatal(err)
			}
			b.load(t)
			ready := conditions.Get(b.obj, "Ready")
			if ready.Status != tc.status || ready.Reason != tc.reason {
				t.Errorf("Ready is %s (%s)", ready.Status, ready.Reason)
			}
			working := ""
			if c := conditions.Get(b.obj, "Reconciling"); c != nil {
				working = c.Reason
			}
			check.SameNamed(t, "the reason of Reconciling", tc.working, working)
			check.SameNamed(t, "observedGeneration", tc.observed, b.obj.Status.ObservedGeneration)
			b.wantRequests(t, "patch status")
		})
	}
}

func TestWithoutOptionsItOnlyWrites(t *testing.T) {
	b := newBench(t, nil)
	check.Must(b.end(t))(t)
	b.wantRequests(t)
	b.obj.Status.Phase = "Half-way"
	if _, err := b.end(t, summarize.WithReconcileError(errAny)); err != nil {
		t.Fatalf("without a builder nothing is computed: %v", err)
	}
	b.wantRequests(t, "patch status")
	if len(b.obj.Status.Conditions) != 0 {
		t.Errorf("conditions: %v", b.obj.Status.Conditions)
	}
}

func TestProcessorsSeeTheRawResultFirst(t *testing.T) {
	b := newBench(t, nil)
	seen := func(_ context.Context, _ summarize.Recorder, obj client.Object, res result.Result, err error) {
		if res != result.Success || !errors.Is(err, errAny) {
			t.Errorf("saw %s, %v", res, err)
		}
		obj.(*widget.Widget).Status.Phase = "Processed"
	}
	_, err := b.end(t, summarize.WithProcessors(seen), summarize.WithReconcileResult(result.Success), summarize.WithReconcileError(errAny), summarize.WithResultBuilder(builder))
	if !errors.Is(err, errAny) {
		t.Errorf("error: %v", err)
	}
	b.load(t)
	check.SameNamed(t, "what the processor changed is not written", "Processed", b.obj.Status.Phase)
}

func TestObservedGeneration(t *testing.T) {
	for _, tc := range []struct {
		options []summarize.Option
		want    int64
	}{{nil, 0}, {[]summarize.Option{summarize.WithObservedGenerationAlways()}, 4}} {
		b := newBench(t, nil)
		_, _ = b.end(t, append(tc.options, summarize.WithConditions(plain), summarize.WithResultBuilder(builder), summarize.WithReconcileError(errAny))...)
		b.load(t)
		if b.obj.Status.ObservedGeneration != tc.want {
			t.Errorf("%d options: observedGeneration %d after a failure", len(tc.options), b.obj.Status.ObservedGeneration)
		}
	}
}
