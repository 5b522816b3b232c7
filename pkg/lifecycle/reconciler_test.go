// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

const yes, no, unknown = metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown

func TestTheClaimIsDurableBeforeAnythingElse(t *testing.T) {
	h := &handler{}
	b := newBench(t, h, nil)
	h.claim = func(_ context.Context, w *widget.Widget) error {
		w.Annotations = map[string]string{"external-id": "42"}
		w.Status.Phase = "FirstSeen"
		return nil
	}
	h.apply = func(_ context.Context, w *widget.Widget, _ lifecycle.Commit) (result.Result, error) {
		server := b.read()
		if !slices.Contains(server.Finalizers, finalizer) || server.Annotations["external-id"] != "42" || server.Status.Phase != "FirstSeen" {
			t.Errorf("on the server: %+v", server)
		}
		w.Status.Phase = "Done"
		return result.Success, nil
	}
	out, err := b.reconcile()
	if err != nil || out.RequeueAfter != interval {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("Claim", "CreateOrUpdate")
	b.wantRequests("get", "patch", "patch status", "patch status")
	b.wantReady(yes, "Ready", "everything is as it should be")
	if w := b.read(); w.Status.Phase != "Done" || w.Status.ObservedGeneration != 1 {
		t.Errorf("status: %+v", w.Status)
	}
}

func TestAtRestNothingIsWritten(t *testing.T) {
	b := newBench(t, &handler{}, nil)
	for range 2 {
		b.mustReconcile()
	}
	b.wantRequests("get")
}

func TestAFailingClaimStopsTheReconcile(t *testing.T) {
	b := newBench(t, &handler{claim: func(context.Context, *widget.Widget) error { return errors.New("no owner") }}, nil)
	if _, err := b.reconcile(); err == nil {
		t.Error("the error is lost")
	}
	b.wantCalls("Claim")
	b.wantReady(no, "Error", "no owner")
	check.SameNamed(t, "the finalizer is there although nothing was claimed", 0, len(b.read().Finalizers))
}

func TestDeletion(t *testing.T) {
	h := &handler{}
	b := newBench(t, h, claimed)
	b.mustReconcile()
	b.delete()

	h.remove = returns(result.Empty, result.NewWaiting(errors.New("2 pods are left"), "DeletionProcessing", time.Second))
	out, err := b.reconcile()
	if err != nil || out.RequeueAfter != time.Second {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("Delete")
	b.wantReady(unknown, "DeletionProcessing", "2 pods are left")

	for _, res := range []result.Result{result.Empty, result.Requeue} {
		h.remove = returns(res, nil)
		b.mustReconcile()
		if b.read() == nil {
			t.Fatalf("%s is not Success", res)
		}
	}

	h.remove = nil
	out, err = b.reconcile()
	if err != nil || out != (reconcile.Result{}) {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("Delete", "ForgetObject")
	b.wantRequests("get", "patch")
	if b.read() != nil {
		t.Error("the object is still there")
	}
	if _, err := b.reconcile(); err != nil {
		t.Error(err)
	}
	b.wantCalls("ForgetObject")
}

func TestOthersFinalizersStay(t *testing.T) {
	b := newBench(t, &handler{}, func(w *widget.Widget) { w.Finalizers = []string{foreign, finalizer} })
	b.delete()
	b.mustReconcile()
	b.wantCalls("Delete")
	b.wantRequests("get", "patch")
	if got := b.read().Finalizers; !slices.Equal(got, []string{foreign}) {
		t.Errorf("finalizers %v", got)
	}
	b.mustReconcile()
	b.wantCalls("ForgetObject")
	b.wantRequests("get")
}

func TestAnObjectDeletedBeforeItWasClaimedIsIgnored(t *testing.T) {
	b := newBench(t, &handler{}, func(w *widget.Widget) { w.Finalizers = []string{foreign} })
	b.delete()
	if out, err := b.reconcile(); err != nil || out != (reconcile.Result{}) {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("ForgetObject")
	b.wantRequests("get")
}

func TestSuspension(t *testing.T) {
	suspended := true
	h := &handler{suspended: func() bool { return suspended }}
	h.look = func(_ context.Context, w *widget.Widget) error { w.Status.Phase = "Seen"; return nil }
	b := newBench(t, h, nil)
	if out, err := b.reconcile(); err != nil || out != (reconcile.Result{}) {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("UpdateStatus")
	b.wantReady(unknown, "Suspended", "suspended: nothing is created or updated")
	if w := b.read(); len(w.Finalizers) != 0 || w.Status.Phase != "Seen" {
		t.Errorf("on the server: %+v", w)
	}
	suspended = false
	b.mustReconcile()
	suspended = true
	b.delete()
	b.mustReconcile()
	b.wantCalls("Delete", "ForgetObject")
}

func TestOutcomesShowInTheConditions(t *testing.T) {
	for _, tc := range []struct {
		name                 string
		res                  result.Result
		err                  error
		status               metav1.ConditionStatus
		reason, message      string
		after                time.Duration
		returned             bool
		reconciling, stalled bool
	}{
		{"success", result.Success, nil, yes, "Ready", "everything is as it should be", interval, false, false, false},
		{"more to do", result.Requeue, nil, unknown, "Processing", "work goes on", result.RequeueDelay, false, true, false},
		{"nothing said", result.Empty, nil, yes, "Ready", "everything is as it should be", interval, false, false, false},
		{"waiting", result.Empty, result.NewWaiting(errors.New("not yet"), "Dependency", time.Minute), unknown, "Dependency", "not yet", time.Minute, false, true, false},
		{"stalled", result.Empty, result.NewStalling(errors.New("bad"), "Invalid"), no, "Invalid", "bad", interval, false, false, true},
		{"failed", result.Empty, errors.New("refused"), no, "Error", "refused", 0, true, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := &handler{apply: returns(tc.res, tc.err)}
			b := newBench(t, h, claimed)
			out, err := b.reconcile()
			if out.RequeueAfter != tc.after || (err != nil) != tc.returned {
				t.Errorf("returned %v, %v", out, err)
			}
			b.wantRequests("get", "patch status")
			b.wantReady(tc.status, tc.reason, tc.message)
			if w := b.read(); conditions.IsReconciling(w) != tc.reconciling || conditions.IsStalled(w) != tc.stalled {
				t.Errorf("conditions: %+v", w.Status.Conditions)
			}
			if _, err := b.reconcile(); (err != nil) != tc.returned {
				t.Error(err)
			}
			b.wantRequests("get")
			check.SameNamed(t, "events for one transition", 1, len(b.recorder.Events))
		})
	}
}
