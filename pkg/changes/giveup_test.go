// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
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

func TestToPollIsNoFailure(t *testing.T) {
	s := newStand(t, false)
	s.policy = DefaultRetryPolicy
	s.memory.appeared(configMap("1", "1", "a"))
	poll := func(ReconcileRequest) (ReconcileResult, error) {
		return ReconcileResult{RequeueAfter: time.Second}, nil
	}
	var delays []time.Duration
	for _, answer := range []func(ReconcileRequest) (ReconcileResult, error){poll, poll, nil, nil, poll, nil} {
		if s.answer = answer; answer == nil {
			s.answer = refusing(errRefused, ReconcileActionCreated)
		}
		_, after, _ := s.reconcile()
		delays = append(delays, after)
	}
	want := []time.Duration{time.Second, time.Second, defaultRetryInitial, 2 * defaultRetryInitial, time.Second, defaultRetryInitial}
	if diff := cmp.Diff(want, delays); diff != "" {
		t.Errorf("delays (-want +got):\n%s", diff)
	}
}

func TestWhatWasGivenUpIsReconciledAgainWhenItChangesAsTheOptionSays(t *testing.T) {
	labelled := func(version, value string) client.Object {
		object := configMap("1", version, "a")
		object.Labels = map[string]string{"team": value}
		return object
	}
	for _, tc := range []struct {
		name    string
		changed func(oldObj, newObj client.Object) bool
		calls   []int // after another label and after only another version
	}{
		{"plain", AnythingChanged, []int{1, 1}},
		{"content", ContentChanged, []int{0, 0}},
		{"labels", func(o, n client.Object) bool { return o.GetLabels()["team"] != n.GetLabels()["team"] }, []int{1, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStand(t, false)
			s.memory.changed, s.policy = tc.changed, NoRetryPolicy()
			s.answer = refusing(errRefused, ReconcileActionCreated)
			s.memory.appeared(labelled("1", "x"))
			if actions, _, _ := s.reconcile(); len(actions) != 1 {
				t.Fatal(actions)
			}
			var calls []int
			before := labelled("1", "x")
			for _, next := range []client.Object{labelled("2", "y"), labelled("3", "y")} {
				s.memory.replaced(before, next)
				before = next
				actions, _, _ := s.reconcile()
				calls = append(calls, len(actions))
			}
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
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
			if diff := cmp.Diff(want, actions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if valueOf(s.last().Object) != "b" {
				t.Errorf("notified of %q", valueOf(s.last().Object))
			}
		})
	}
}

func TestASuccessorIsReportedAlsoIfTheDeletionOfItsPredecessorIsNeverRetried(t *testing.T) {
	s := newStand(t, false)
	s.policy = NoRetryPolicy()
	s.answer = refusing(errRefused, ReconcileActionDeleted)
	s.memory.appeared(configMap("1", "1", "a"))
	_, _, _ = s.reconcile()
	s.memory.disappeared(configMap("1", "2", "a"))
	s.memory.appeared(configMap("2", "3", "b"))
	if actions, after, err := s.reconcile(); len(actions) != 1 || after != writeRetryInitial || isTerminal(err) {
		t.Errorf("%v, %s, %v", actions, after, err)
	}
	if actions, _, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionCreated || err != nil {
		t.Errorf("%v, %v", actions, err)
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
		if err := s.finalizers.client.Get(t.Context(), testKey, obj); err != nil {
			t.Fatal(err)
		}
		return obj.DeepCopy()
	}
	if finalizers := get().Finalizers; len(finalizers) != 0 {
		t.Fatalf("finalizers %v", finalizers)
	}
	obj.Finalizers = []string{testFinalizer} // by the other process
	if err := s.finalizers.client.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	if err := s.finalizers.client.Delete(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	s.memory.appeared(get())
	if actions, _, err := s.reconcile(); len(actions) != 1 || actions[0] != ReconcileActionDeleted || err != nil {
		t.Errorf("%v, %v", actions, err)
	}
	if err := s.finalizers.client.Get(t.Context(), testKey, obj); !apierrors.IsNotFound(err) {
		t.Errorf("%v, finalizers %v", err, obj.Finalizers)
	}
}

func TestAnObjectWithoutOurFinalizersIsNotWrittenAgain(t *testing.T) {
	s := newStand(t, true)
	obj := configMap("1", "1", "a", testFinalizer)
	obj.DeletionTimestamp = &metav1.Time{Time: s.clock}
	s.memory.appeared(obj) // the server does not have it any more
	for i, want := range []struct {
		calls   int
		version string
	}{{1, "v1"}, {0, ""}} {
		s.version = ""
		if actions, after, err := s.reconcile(); len(actions) != want.calls || after != 0 || err != nil || s.version != want.version {
			t.Errorf("reconcile %d: %v, %s, %v, write in version %q", i, actions, after, err, s.version)
		}
	}
}

func TestAnObjectThatOthersHoldAfterItsDeletionIsLeftInPeace(t *testing.T) {
	s := newStand(t, true)
	s.interval = time.Minute
	s.memory.appeared(s.stored(configMap("1", "", "a", "other.example.com/x", testFinalizer)))
	if actions, after, err := s.reconcile(); len(actions) != 1 || after != time.Minute || err != nil {
		t.Fatalf("%v, %s, %v", actions, after, err)
	}
	obj := configMap("1", "1", "a", "other.example.com/x", testFinalizer)
	obj.DeletionTimestamp = &metav1.Time{Time: s.clock}
	s.memory.appeared(obj)
	for _, want := range []int{1, 0, 0} {
		s.clock = s.clock.Add(2 * time.Minute)
		if actions, after, err := s.reconcile(); len(actions) != want || after != 0 || err != nil {
			t.Errorf("%v, %s, %v", actions, after, err)
		}
	}
}
