// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

func TestAProcessThatDoesNotLeadStartsNoReconcileAndEndsThePresentOne(t *testing.T) {
	var deposed error
	h := &handler{}
	b := newBench(t, h, claimed)
	b.options.Leading = func() error { return deposed }
	b.rebuild(h)
	quiet := func(what string, after time.Duration, requests ...string) {
		t.Helper()
		if out, err := b.reconcile(); err != nil || out != (reconcile.Result{RequeueAfter: after}) {
			t.Errorf("%s: returned %v, %v", what, out, err)
		}
		b.wantRequests(requests...)
		if len(b.recorder.Events) != 0 {
			t.Errorf("%s: there are events", what)
		}
	}
	h.apply = func(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
		w.Status.Phase = "Working"
		deposed = errors.New("another client leads")
		return result.Success, commit(ctx)
	}
	quiet("deposed before a commit", 5*time.Second, "get")
	quiet("deposed before the reconcile", 5*time.Second)
	deposed = nil
	h.apply = func(_ context.Context, w *widget.Widget, _ lifecycle.Commit) (result.Result, error) {
		deposed = &result.RequeueError{After: time.Second, Err: errors.New("another client leads")}
		return result.Empty, errors.New("broken")
	}
	quiet("deposed before the verdict", time.Second, "get")

	deposed = nil
	b.delete()
	h.remove = returns(result.Empty, result.NewWaiting(errors.New("2 pods are left"), "DeletionProcessing", time.Second))
	b.mustReconcile()
	for len(b.recorder.Events) > 0 {
		<-b.recorder.Events
	}
	h.remove = func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
		deposed = errors.New("another client leads")
		return result.Success, nil
	}
	quiet("deposed before the finalization", 5*time.Second, "get")
	if b.read() == nil {
		t.Error("the object was finalized")
	}
	deposed, h.remove = nil, nil
	if _, err := b.reconcile(); err != nil || b.read() != nil {
		t.Errorf("once it leads again: %v", err)
	}
}

func TestTheOptionLeadingStopsAReconciler(t *testing.T) {
	h := &handler{}
	b := newBench(t, h, claimed)
	options := lifecycle.Options[*widget.Widget]{Client: b.server, Finalizer: finalizer, Leading: func() error { return errors.New("another client leads") }}
	loop := check.Must(lifecycle.NewReconciler(h, options))(t)
	b.loop = loop
	if out, err := b.reconcile(); err != nil || out.RequeueAfter != 5*time.Second || len(h.calls) > 0 {
		t.Errorf("returned %v, %v after calls of %v", out, err, h.calls)
	}
	b.wantRequests()
}

func TestARequeueErrorWithoutADelayDoesNotSpin(t *testing.T) {
	for _, why := range []*result.RequeueError{{Err: errors.New("no free slot")}, {After: -time.Second}} {
		h := &handler{apply: returns(result.Empty, why)}
		b := newBench(t, h, claimed)
		if out, err := b.reconcile(); err != nil || out.RequeueAfter != 5*time.Second {
			t.Errorf("returned %v, %v", out, err)
		}
	}
}
