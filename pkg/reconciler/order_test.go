// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// gate is a ConfigMap that is ready as soon as it is opened.
func gate(name string, annotations ...string) client.Object {
	return config(name, "1", append(annotations, "ready-when", `"open" in self.metadata.labels`)...)
}

func (b *bench) open(name string) {
	b.t.Helper()
	b.change(name, func(c *corev1.ConfigMap) { c.Labels["open"] = "yes" })
}

// hold keeps a ConfigMap from being removed until its finalizer is removed.
func (b *bench) hold(names ...string) {
	b.t.Helper()
	for _, name := range names {
		b.change(name, func(c *corev1.ConfigMap) { c.Finalizers = []string{"example.com/hold"} })
	}
}

func (b *bench) letGo(name string) {
	b.t.Helper()
	b.change(name, func(c *corev1.ConfigMap) { c.Finalizers = nil })
}

// mustWait applies and expects something to be waited for.
func (b *bench) mustWait(objects ...client.Object) reconciler.Outcome {
	b.t.Helper()
	outcome, err := b.apply(objects...)
	if err != nil || outcome.Done() {
		b.t.Fatalf("apply: %v, done: %t", err, outcome.Done())
	}
	return outcome
}

// waiting returns what an object waits for, as "reason: message".
func waiting(outcome reconciler.Outcome, name string) string {
	for _, wait := range outcome.Waiting {
		if wait.Key.Name == name {
			return string(wait.Reason) + ": " + wait.Message
		}
	}
	return ""
}

func TestAWaveIsWrittenWhenTheWaveBeforeItIsReady(t *testing.T) {
	b := newBench(t)
	objects := []client.Object{
		config("third", "1", "apply-order", "32767"), gate("second"), config("beside", "1"), gate("first", "apply-order", "-32768"),
	}
	outcome := b.mustWait(objects...)
	if b.get("first") == nil || b.get("second") != nil || b.get("third") != nil {
		t.Error("a wave did not wait for the first one")
	}
	if got := waiting(outcome, "second"); !strings.Contains(got, "first (apply-order -32768)") {
		t.Errorf("the second wave waits for %q", got)
	}
	b.open("first")
	b.mustWait(objects...)
	if b.get("second") == nil || b.get("beside") == nil || b.get("third") != nil {
		t.Error("the third wave did not wait for the second one")
	}
	b.open("second")
	b.mustApply(objects...)
	if b.get("third") == nil {
		t.Error("the third wave was not written")
	}
}

func TestAnObjectThatIsNotReadyHoldsBackNothingOfItsOwnWaveButLateStages(t *testing.T) {
	b := newBench(t)
	outcome := b.mustWait(gate("gate"), config("beside", "1"), deployment("server"), webhook(b.namespace))
	if b.get("beside") == nil || !b.exists(placed(deployment("server"), b.namespace)) {
		t.Error("an object of the same wave was held back")
	}
	if b.exists(webhook(b.namespace)) || !strings.Contains(waiting(outcome, b.namespace), "waits for ") {
		t.Errorf("the webhook configuration did not wait: %v", outcome.Waiting)
	}
}

func TestAFailingObjectHoldsBackOnlyWhatComesAfterIt(t *testing.T) {
	b := newBench(t)
	bad := config("bad", "1")
	bad.Object["data"] = map[string]any{"not a key": "1"}
	_, err := b.apply(bad, config("beside", "1"), config("before", "1", "apply-order", "-1"), config("after", "1", "apply-order", "1"))
	if err == nil || !strings.Contains(err.Error(), "ConfigMap "+b.namespace+"/bad") {
		t.Errorf("got %v, want an error that names the object", err)
	}
	if b.get("beside") == nil || b.get("before") == nil {
		t.Error("the failure held back an object beside or before it")
	}
	if b.get("after") != nil {
		t.Error("the next wave did not wait")
	}
}

func TestAllFailuresOfAWaveAreReportedTogether(t *testing.T) {
	b := newBench(t)
	var objects []client.Object
	for _, name := range []string{"one", "two"} {
		bad := config(name, "1")
		bad.Object["data"] = map[string]any{"not a key": "1"}
		objects = append(objects, bad)
	}
	_, err := b.apply(objects...)
	for _, name := range []string{"/one", "/two"} {
		if err == nil || !strings.Contains(err.Error(), b.namespace+name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}

func TestDeletionGoesThroughItsWavesAndEachWaitsForTheOneBefore(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("first", "1", "delete-order", "-1"), config("second", "1"), config("third", "1", "delete-order", "7"))
	b.hold("first", "second")
	deleting := func() (names []string) {
		for _, name := range []string{"first", "second", "third"} {
			if live := b.get(name); live == nil || live.DeletionTimestamp != nil {
				names = append(names, name)
			}
		}
		return names
	}
	for i, next := range []string{"first", "second", "third"} {
		outcome, err := b.delete()
		if err != nil || outcome.Done() != (i == 2) {
			t.Fatalf("delete: %v, done: %t", err, outcome.Done())
		}
		if got := deleting(); len(got) != i+1 || !slices.Contains(got, next) {
			t.Fatalf("in wave %d these are deleted: %v", i, got)
		}
		if i < 2 {
			b.letGo(next)
		}
	}
}

func TestPruningFollowsTheDeleteOrderAndDoesNotWaitForOtherObjectsToBecomeReady(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("first", "1", "delete-order", "-1"), config("second", "1"), config("stays", "1"))
	b.hold("first")
	b.mustWait(config("stays", "1"), gate("unrelated"))
	if live := b.get("first"); live == nil || live.DeletionTimestamp == nil {
		t.Error("what was dropped waits for an object that is not ready")
	}
	if live := b.get("second"); live == nil || live.DeletionTimestamp != nil {
		t.Error("the second delete wave did not wait for the first one")
	}
	b.letGo("first")
	b.mustWait(config("stays", "1"), gate("unrelated"))
	if b.get("second") != nil {
		t.Error("the second delete wave was not pruned")
	}
}

func TestAPurgedObjectIsDeletedAtTheEndOfItsWaveAndNotRecreatedWhileUnchanged(t *testing.T) {
	b := newBench(t)
	task := func(version string) client.Object {
		return config("task", version, "purge-order", "0", "ready-when", `"open" in self.metadata.labels`)
	}
	next := config("next", "1", "apply-order", "1")
	b.mustWait(task("1"), next)
	if b.get("task") == nil || b.get("next") != nil {
		t.Fatal("the next wave did not wait for the task")
	}
	b.open("task")
	b.mustApply(task("1"), next)
	if b.get("task") != nil || b.get("next") == nil {
		t.Fatal("the task was not purged before the next wave")
	}
	if outcome := b.mustApply(task("1"), next); len(outcome.Steps) > 0 || b.get("task") != nil {
		t.Errorf("steps %v for a task that is done", outcome.Steps)
	}
	b.mustWait(task("2"), next)
	if live := b.get("task"); live == nil || live.Data["value"] != "2" {
		t.Error("the changed task does not run")
	}
	b.open("task")
	b.mustApply(task("2"), next)
}

func TestAnObjectCanBePurgedInALaterWaveThanItsOwn(t *testing.T) {
	b := newBench(t)
	task, last := config("task", "1", "purge-order", "3"), gate("last", "apply-order", "3")
	b.mustWait(task, last)
	if b.get("task") == nil {
		t.Error("it was purged before the end of its wave")
	}
	b.open("last")
	b.mustApply(task, last)
	if b.get("task") != nil {
		t.Error("it was not purged")
	}
}
