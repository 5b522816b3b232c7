// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/test/check"
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

	w, g := newReceiver(), newGate()
	b.start(g.Wrap, &corev1.ConfigMap{}, w.opinionated("b", g), changes.Options{})
	b.untilGone("removed")
	b.untilFinalizers("new", finalizer)
	b.until("four calls were made", func() (bool, string) { return len(w.calls()) >= 4, w.text() })
	calls := w.calls()
	slices.Sort(calls)
	want := []string{"add new=1", "delete removed=1", "sync changed=2", "sync kept=1"}
	check.EqualNamed(t, "calls after the restart", want, calls)
	writes := written(g)
	slices.Sort(writes)
	check.EqualNamed(t, "writes after the restart", []string{"PATCH new", "PATCH new", "PATCH removed"}, writes)
}

func TestAPlainWatcherWritesNothingAndGetsEveryChangeWhileItRuns(t *testing.T) {
	b, w, g := newBed(t), newReceiver(), newGate()
	plain := w.watcher("a", g)
	b.create("x", "1")
	b.start(g.Wrap, &corev1.ConfigMap{}, &plain, changes.Options{})
	b.untilNotified(w, "add x=1")
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Labels = map[string]string{"a": "b"} })
	b.untilNotified(w, "add x=1", "update x=1 was 1")
	b.edit("x", func(obj *corev1.ConfigMap) { obj.Data["value"] = "2" })
	b.untilNotified(w, "add x=1", "update x=1 was 1", "update x=2 was 1")
	b.delete("x")
	b.untilNotified(w, "add x=1", "update x=1 was 1", "update x=2 was 1", "delete x=2")
	if writes := written(g); len(writes) > 0 {
		t.Errorf("writes: %q", writes)
	}
}
