// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
)

func TestWhoeverIsWokenIsNotForgottenHoweverManyWait(t *testing.T) {
	tr := newTriggers()
	for i := range maxTriggers {
		if !tr.trigger(client.ObjectKey{Name: fmt.Sprint(i)}) {
			t.Fatalf("the trigger %d is refused", i)
		}
	}
	woken, changed := client.ObjectKey{Name: "woken"}, client.ObjectKey{Name: "changed"}
	if tr.trigger(client.ObjectKey{Name: "one more"}) {
		t.Error("there is no end of triggers")
	}
	tr.wake(woken)
	tr.onChange(reconciler.Owner{Name: "changed"}, reconciler.Change{What: reconciler.EventContent})
	taken := tr.take()
	for _, key := range []client.ObjectKey{woken, changed} {
		if _, comes := taken[key]; !comes {
			t.Errorf("%s is forgotten", key.Name)
		}
	}
}

func TestAChangeThatIsNotWorthALookYetDoesNotWakeAtOnce(t *testing.T) {
	tr := newTriggers()
	key := client.ObjectKey{Name: "main"}
	tr.onChange(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventContent, After: time.Hour})
	if _, comes := tr.delayed[key]; !comes || len(tr.take()) > 0 {
		t.Errorf("delayed is %v", tr.delayed)
	}
	tr.onChange(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventVanished})
	if after, comes := tr.take()[key]; !comes || after > 0 {
		t.Error("what happens meanwhile waits, too")
	}
}

func TestWhatSaysSomethingAboutItselfAllTheTimeIsNoReasonToComeEarlier(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		tr := newTriggers()
		tr.onChange(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventStatus, After: after})
		if _, delayed := tr.delayed[client.ObjectKey{Name: "main"}]; delayed != want {
			t.Errorf("worth a look after %s: delayed is %v", after, tr.delayed)
		}
	}
}

func TestALookThatWasPutOffIsMadeByAPassOfItsOwn(t *testing.T) {
	engine := &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1}}
	h, _ := testHandler(t, engine)
	asked := map[client.ObjectKey]time.Duration{}
	h.later = func(key client.ObjectKey, after time.Duration) { asked[key] = after }
	obj := newWidget()
	passOver(t, h, obj)
	if len(asked) > 0 {
		t.Errorf("asked for is %v, for nothing", asked)
	}
	for again, want := range map[time.Duration]time.Duration{time.Minute: time.Minute, -time.Minute: minNet} {
		engine.outcome.NextDriftCheck = h.now().Add(again)
		passOver(t, h, obj)
		if got := asked[client.ObjectKeyFromObject(obj)]; got != want {
			t.Errorf("due in %s: asked for is a pass after %s", again, got)
		}
	}
}

// Nothing else makes it come before the requeue interval: it is stalled.
func TestAContestedObjectIsCorrectedInTimeAlthoughAnotherOneIsStalled(t *testing.T) {
	engine := &fakeEngine{err: result.NewStalling(errors.New("ConfigMap shop/b belongs to Helm"), "Conflict")}
	h, _ := testHandler(t, engine)
	first, second := waitFor("/ConfigMap shop/a", string(reconciler.WaitConflict), ""), waitFor("/ConfigMap shop/c", string(reconciler.WaitConflict), "")
	first.Until, second.Until = h.now().Add(4*time.Second), h.now().Add(9*time.Second)
	engine.outcome = reconciler.Outcome{Total: 3, Settled: 0, Waiting: []reconciler.Wait{second, first}}
	asked := map[client.ObjectKey]time.Duration{}
	h.later = func(key client.ObjectKey, after time.Duration) { asked[key] = after }
	obj := newWidget()
	passOver(t, h, obj)
	if got := asked[client.ObjectKeyFromObject(obj)]; got != 4*time.Second {
		t.Errorf("asked for is a pass after %s", got)
	}
}

// A light pass may be the one that makes the component ready: after a full one that had
// to wait, or one over a generation that was ready before.
func TestTheHooksAfterAPassAreNotLeftOutBecauseAnEarlierStateWasReady(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Status)
		runs   bool
	}{
		"all was done":              {func(*Status) {}, false},
		"of an earlier generation":  {func(s *Status) { s.AppliedGeneration = 0 }, true},
		"something is in the works": {func(s *Status) { s.ProcessingSince = new(metav1.Now()) }, true},
		"it was not ready":          {func(s *Status) { s.State = StateProcessing }, true},
	} {
		h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1, ManifestDigest: "m1"}})
		obj := newWidget()
		passOver(t, h, obj)
		if obj.GetStatus().State != v1alpha1.StateReady {
			t.Fatalf("%s: the state is %s", name, obj.GetStatus().State)
		}
		conditionstest.Check(t, conditionsOf(obj))
		runs := 0
		h.hooks[postReconcile] = []HookFunc[*widget]{func(context.Context, client.Client, *widget) error { runs++; return nil }}
		tc.change(obj.GetStatus())
		if err := h.hooksAfterLight(h.basicContext(t.Context(), obj), obj); err != nil {
			t.Fatal(err)
		}
		if runs > 0 != tc.runs {
			t.Errorf("%s: it was called %d times", name, runs)
		}
	}
}
