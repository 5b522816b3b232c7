// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/check"
)

func isTerminal(err error) bool { return errors.Is(err, reconcile.TerminalError(nil)) }

// refusing returns what a reconciler answers that fails for some actions.
func refusing(err error, actions ...ReconcileAction) func(ReconcileRequest) (ReconcileResult, error) {
	return func(req ReconcileRequest) (ReconcileResult, error) {
		for _, action := range actions {
			if req.Action == action {
				return ReconcileResult{}, err
			}
		}
		return ReconcileResult{}, nil
	}
}

func TestATerminalErrorIsGivenUpAndReconciledAgainAsAnyOther(t *testing.T) {
	terminal := fmt.Errorf("wrapped: %w", reconcile.TerminalError(errRefused))
	for _, tc := range []struct {
		name     string
		interval time.Duration
		requeue  time.Duration
		after    time.Duration // 0: the controller forgets it
		gaveUp   int
	}{
		{"without resyncs", 0, 0, 0, 1},
		{"with resyncs", time.Minute, 0, time.Minute, 1},
		{"with a delay of its own", 0, time.Hour, time.Hour, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStand(t, false)
			s.interval = tc.interval
			s.answer = func(ReconcileRequest) (ReconcileResult, error) {
				return ReconcileResult{RequeueAfter: tc.requeue}, terminal
			}
			s.memory.appeared(configMap("1", "1", "a"))
			_, after, err := s.reconcile()
			if !errors.Is(err, errRefused) || isTerminal(err) != (tc.after == 0) || tc.after > 0 && after != tc.after || len(s.gaveUp) != tc.gaveUp {
				t.Errorf("after %s, %v, gave up %v", after, err, s.gaveUp)
			}
			if tc.interval == 0 {
				return
			}
			s.clock = s.clock.Add(tc.interval)
			if actions, _, _ := s.reconcile(); len(actions) != 1 {
				t.Errorf("after the interval: %v", actions)
			}
		})
	}
}

// Our own writes before the call are no change, whatever the option says.
func TestWhatWasGivenUpIsNotReconciledAgainBecauseOfOurFinalizers(t *testing.T) {
	s := newStand(t, true)
	s.memory.changed, s.policy = AnythingChanged, NoRetryPolicy()
	s.answer = refusing(errRefused, ReconcileActionCreated)
	fresh := s.stored(configMap("1", "", "a"))
	s.memory.appeared(fresh)
	if actions, _, _ := s.reconcile(); len(actions) != 1 {
		t.Fatal(actions)
	}
	claimed := configMap("", "", "")
	if err := s.finalizers.client.Get(t.Context(), testKey, claimed); err != nil || len(claimed.Finalizers) == 0 {
		t.Fatalf("%v, finalizers %v", err, claimed.Finalizers)
	}
	s.memory.replaced(fresh, claimed)
	if actions, _, err := s.reconcile(); len(actions) != 0 || err != nil {
		t.Errorf("%v, %v", actions, err)
	}
}

func TestADeletionThatWasGivenUpIsTriedOnceMoreBeforeTheSuccessorIsReported(t *testing.T) {
	for name, better := range map[string]bool{"and succeeds": true, "and fails": false} {
		t.Run(name, func(t *testing.T) {
			s := newStand(t, false)
			s.policy, s.interval = NoRetryPolicy(), time.Hour
			s.memory.appeared(configMap("1", "1", "a"))
			_, _, _ = s.reconcile()
			s.answer = refusing(errRefused, ReconcileActionDeleted)
			s.memory.disappeared(configMap("1", "2", "a"))
			if actions, after, err := s.reconcile(); len(actions) != 1 || after != time.Hour || isTerminal(err) {
				t.Fatalf("%v, %s, %v", actions, after, err)
			}
			s.memory.appeared(configMap("2", "3", "b"))
			if better {
				s.answer = refusing(nil)
			}
			actions, after, err := s.reconcile()
			want := []ReconcileAction{ReconcileActionDeleted, ReconcileActionCreated}
			if !better {
				if after != writeRetryInitial || isTerminal(err) || !errors.Is(err, errRefused) {
					t.Errorf("%s, %v", after, err)
				}
				more, _, _ := s.reconcile()
				actions = append(actions, more...)
			}
			check.EqualNamed(t, "actions", want, actions)
			check.SameNamed(t, "notified of", "b", valueOf(s.last().Object))
		})
	}
}

func TestAnObjectWithNewFinalizersOfAnotherProcessIsDeletedAgain(t *testing.T) {
	s := newStand(t, true)
	obj := s.stored(configMap("1", "", "a", testFinalizer))
	s.memory.appeared(obj.DeepCopy())
	s.reconcile()
	s.memory.disappeared(obj.DeepCopy()) // it left the selector, and came back
	s.memory.appeared(obj.DeepCopy())
	if actions, _, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionDeleted || err != nil {
		t.Fatalf("%v, %v", actions, err)
	}
	get := func() *corev1.ConfigMap {
		t.Helper()
		check.NoError(t, s.finalizers.client.Get(t.Context(), testKey, obj))
		return obj.DeepCopy()
	}
	if finalizers := get().Finalizers; len(finalizers) != 0 {
		t.Fatalf("finalizers %v", finalizers)
	}
	obj.Finalizers = []string{testFinalizer} // by the other process
	check.NoError(t, s.finalizers.client.Update(t.Context(), obj))
	check.NoError(t, s.finalizers.client.Delete(t.Context(), obj))
	s.memory.appeared(get())
	if actions, _, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionDeleted || err != nil {
		t.Errorf("%v, %v", actions, err)
	}
	if err := s.finalizers.client.Get(t.Context(), testKey, obj); !apierrors.IsNotFound(err) {
		t.Errorf("%v, finalizers %v", err, obj.Finalizers)
	}
}
