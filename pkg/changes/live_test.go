// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/changes"
)

// untilNotified waits until the calls are these.
func (b *bed) untilNotified(w *receiver, want ...string) {
	b.Helper()
	b.until(fmt.Sprintf("the receiver got %q", want), func() (bool, string) {
		got := w.calls()
		return len(got) >= len(want), fmt.Sprintf("it got %q", got)
	})
	if diff := cmp.Diff(want, w.calls()); diff != "" {
		b.Fatalf("what the receiver got (-want +got):\n%s", diff)
	}
}

// untilFinalizers waits until these of our finalizers are on an object.
func (b *bed) untilFinalizers(name string, want ...string) {
	b.Helper()
	b.until(fmt.Sprintf("the finalizers of %s are %q", name, want), func() (bool, string) {
		obj := b.get(name)
		return obj != nil && slices.Equal(obj.Finalizers, want), fmt.Sprintf("it is %+v", obj)
	})
}

func TestAnOpinionatedWatcherGetsEveryChangeOnceAndWritesThreeTimes(t *testing.T) {
	b, w, g := newBed(t), newReceiver(), &gate{}
	b.start(g.wrap, &corev1.ConfigMap{}, w.opinionated("a", g), changes.Options{})

	b.create("x", "1")
	b.untilFinalizers("x", finalizer)
	b.untilNotified(w, "add x=1")
	if diff := cmp.Diff([]string{"PATCH x", "PATCH x"}, g.written()); diff != "" {
		t.Errorf("writes of a creation (-want +got):\n%s", diff)
	}

	b.edit("x", func(obj *corev1.ConfigMap) { obj.Labels = map[string]string{"a": "b"} })
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Annotations = map[string]string{"a": "b"} })
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Finalizers = append(obj.Finalizers, "other.example.com/x") })
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Data["value"] = "2" })
	b.untilNotified(w, "add x=1", "update x=2 was 1")
	if writes := g.written(); len(writes) > 0 {
		t.Errorf("writes of an update: %q", writes)
	}

	b.delete("x")
	b.untilFinalizers("x", "other.example.com/x")
	b.untilNotified(w, "add x=1", "update x=2 was 1", "delete x=2")
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Finalizers = nil })
	b.untilGone("x")
	b.create("y", "1")
	b.untilNotified(w, "add x=1", "update x=2 was 1", "delete x=2", "add y=1")
	b.untilFinalizers("y", finalizer)
	if diff := cmp.Diff([]string{"PATCH x", "PATCH y", "PATCH y"}, g.written()); diff != "" {
		t.Errorf("writes of a deletion (-want +got):\n%s", diff)
	}
	b.delete("y")
	b.untilGone("y")
	b.create("z", "1")
	b.untilFinalizers("z", finalizer)
	calls := len(w.calls())
	if requests := g.requests(); calls != 6 || requests != calls+8 {
		t.Errorf("%d requests and calls, of which %d are calls: %s", requests, calls, w.text())
	}
}

func TestAfterARestartAnOpinionatedWatcherDistinguishesNewFromHandledAndMissesNoDeletion(t *testing.T) {
	b, w := newBed(t), newReceiver()
	stop := b.start(nil, &corev1.ConfigMap{}, w.opinionated("a", nil), changes.Options{})
	for _, name := range []string{"changed", "kept", "removed"} {
		b.create(name, "1")
		b.untilFinalizers(name, finalizer)
	}
	stop()
	b.delete("removed")
	b.create("new", "1")
	b.edit("changed", func(obj *corev1.ConfigMap) { obj.Data["value"] = "2" })

	w, g := newReceiver(), &gate{}
	b.start(g.wrap, &corev1.ConfigMap{}, w.opinionated("b", g), changes.Options{})
	b.untilGone("removed")
	b.untilFinalizers("new", finalizer)
	b.until("four calls were made", func() (bool, string) { return len(w.calls()) >= 4, w.text() })
	calls := w.calls()
	slices.Sort(calls)
	want := []string{"add new=1", "delete removed=1", "sync changed=2", "sync kept=1"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("calls after the restart (-want +got):\n%s", diff)
	}
	writes := g.written()
	slices.Sort(writes)
	if diff := cmp.Diff([]string{"PATCH new", "PATCH new", "PATCH removed"}, writes); diff != "" {
		t.Errorf("writes after the restart (-want +got):\n%s", diff)
	}
}

func TestAPlainWatcherWritesNothingAndGetsEveryChangeWhileItRuns(t *testing.T) {
	b, w, g := newBed(t), newReceiver(), &gate{}
	plain := w.watcher("a", g)
	b.create("x", "1")
	b.start(g.wrap, &corev1.ConfigMap{}, &plain, changes.Options{})
	b.untilNotified(w, "add x=1")
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Labels = map[string]string{"a": "b"} })
	b.untilNotified(w, "add x=1", "update x=1 was 1")
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Data["value"] = "2" })
	b.untilNotified(w, "add x=1", "update x=1 was 1", "update x=2 was 1")
	b.delete("x")
	b.untilNotified(w, "add x=1", "update x=1 was 1", "update x=2 was 1", "delete x=2")
	if writes := g.written(); len(writes) > 0 {
		t.Errorf("writes: %q", writes)
	}
}

func TestADeletionIsHandledAlsoIfAnotherClientRemovedOurFinalizer(t *testing.T) {
	b, w := newBed(t), newReceiver()
	b.start(nil, &corev1.ConfigMap{}, w.opinionated("a", nil), changes.Options{})
	b.create("x", "1", func(obj *corev1.ConfigMap) { obj.Finalizers = []string{"other.example.com/x"} })
	b.untilFinalizers("x", "other.example.com/x", finalizer)
	b.delete("x")
	b.untilFinalizers("x", "other.example.com/x")
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Finalizers = nil })
	b.untilGone("x")

	b.create("y", "1")
	b.untilFinalizers("y", finalizer)
	b.edit("y", func(obj *corev1.ConfigMap) { obj.Finalizers = nil })
	b.untilFinalizers("y", finalizer) // it is put back
	b.untilNotified(w, "add x=1", "delete x=1", "add y=1")
	b.delete("y")
	b.untilGone("y")
	b.untilNotified(w, "add x=1", "delete x=1", "add y=1", "delete y=1")
}

func TestAnEventSaysWhatIsNotRetriedAndAChangeTriesAgain(t *testing.T) {
	b, d := newBed(t), &diary{}
	fail := errors.New("refused")
	b.start(nil, &corev1.ConfigMap{}, noting(d, func(_ context.Context, req changes.TypedReconcileRequest[*corev1.ConfigMap]) (changes.ReconcileResult, error) {
		if req.Object.Data["value"] == "bad" {
			return changes.ReconcileResult{}, fail
		}
		return changes.ReconcileResult{}, nil
	}), changes.Options{RetryPolicy: changes.NoRetryPolicy()})
	b.create("x", "bad")
	b.until("there is an event", func() (bool, string) {
		list := &eventsv1.EventList{}
		b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
		return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
			return e.Reason == "GaveUp" && e.Regarding.Name == "x" && e.Type == corev1.EventTypeWarning && !strings.Contains(e.Note, fail.Error())
		}), fmt.Sprintf("events: %+v", list.Items)
	})
	b.untilFinalizers("x", finalizer, pending)
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Data["value"] = "good" })
	b.untilFinalizers("x", finalizer)
	b.untilNoted(d, "Created x", "Created x")
	b.delete("x")
	b.untilGone("x")
}

func TestTwoControllersForOneKindDoNotDisturbEachOther(t *testing.T) {
	b, first, second := newBed(t), &diary{}, &diary{}
	mgr := b.newManager(nil)
	held := make(chan struct{})
	one := noting[*corev1.ConfigMap](first, nil)
	two := noting(second, func(_ context.Context, req changes.TypedReconcileRequest[*corev1.ConfigMap]) (changes.ReconcileResult, error) {
		if req.Action == changes.ReconcileActionDeleted {
			<-held
		}
		return changes.ReconcileResult{}, nil
	})
	two.Finalizer = "changes.example.com/second"
	b.check(changes.NewController(b.namespace+"-1", &corev1.ConfigMap{}, one, changes.Options{}).SetupWithManager(mgr))
	b.check(changes.NewController(b.namespace+"-2", &corev1.ConfigMap{}, two, changes.Options{}).SetupWithManager(mgr))
	b.run(mgr)
	b.create("x", "1")
	b.until("both have handled it", func() (bool, string) {
		finalizers := slices.Sorted(slices.Values(b.get("x").Finalizers))
		return slices.Equal(finalizers, []string{finalizer, two.Finalizer}), fmt.Sprint(finalizers)
	})
	b.delete("x")
	b.untilFinalizers("x", two.Finalizer)
	close(held)
	b.untilGone("x")
	for _, d := range []*diary{first, second} {
		b.untilNoted(d, "Created x", "Deleted x")
	}
}
