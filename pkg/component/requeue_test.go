// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

func TestADriftCheckThatWasPutOffIsMadeByAReconcileOfItsOwn(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1}}
	h, _ := testHandler(t, engine)
	asked := h.triggers.(*fakeTriggers).asked
	obj := newWidget()
	reconcileOnce(t, h, obj)
	if len(asked) > 0 {
		t.Errorf("asked for is %v, for nothing", asked)
	}
	for again, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, -time.Minute: conclude.MinDelay} {
		engine.outcome.NextDriftCheck = h.now().Add(again)
		reconcileOnce(t, h, obj)
		if got := asked[client.ObjectKeyFromObject(obj)]; got != want {
			t.Errorf("due in %s: asked for is a reconcile after %s", again, got)
		}
	}
}

// Nothing else makes it come before the requeue interval: it is stalled.
func TestAContestedObjectIsCorrectedInTimeAlthoughAnotherOneIsStalled(t *testing.T) {
	engine := &fakeEngine{err: result.NewStalling(errors.New("ConfigMap shop/b belongs to Helm"), "Conflict")}
	h, _ := testHandler(t, engine)
	first, second := waitFor("/ConfigMap shop/a", string(report.WaitConflict), ""), waitFor("/ConfigMap shop/c", string(report.WaitConflict), "")
	first.Until, second.Until = h.now().Add(4*time.Second), h.now().Add(9*time.Second)
	engine.outcome = reconciler.Outcome{Total: 3, Settled: 0, Waiting: []report.Wait{second, first}}
	asked := h.triggers.(*fakeTriggers).asked
	obj := newWidget()
	reconcileOnce(t, h, obj)
	if got := asked[client.ObjectKeyFromObject(obj)]; got != 4*time.Second {
		t.Errorf("asked for is a reconcile after %s", got)
	}
}

// A fast path may be the one that makes the component ready: after a full one that had
// to wait, or one over a generation that was ready before.
func TestPostReconcileHooksRunAlthoughAnEarlierStateWasReady(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Status)
		runs   bool
	}{
		"all was done":              {func(*Status) {}, false},
		"of an earlier generation":  {func(s *Status) { s.AppliedGeneration = 0 }, true},
		"something is in the works": {func(s *Status) { s.ProcessingSince = new(metav1.Now()) }, true},
		"it was not ready":          {func(s *Status) { s.State = v1alpha1.StateProcessing }, true},
	} {
		h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1, ManifestDigest: "m1"}})
		obj := newWidget()
		reconcileOnce(t, h, obj)
		if obj.GetStatus().State != v1alpha1.StateReady {
			t.Fatalf("%s: the state is %s", name, obj.GetStatus().State)
		}
		conditionstest.Check(t, conditionsOf(obj))
		runs := 0
		h.code.hooks[postReconcile] = hooksOf(func(context.Context, client.Client, *widget) error { runs++; return nil })
		tc.change(obj.GetStatus())
		if err := h.applier.hooksAfterFastPath(h.basicContext(t.Context()), obj); err != nil {
			t.Fatal(err)
		}
		if runs > 0 != tc.runs {
			t.Errorf("%s: it was called %d times", name, runs)
		}
	}
}
