// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// deletion asks for the deletion, with what was rendered for it.
func (b *bench) deletion(objects ...client.Object) reconciler.DeleteRequest {
	return reconciler.DeleteRequest{
		Owner: b.owner(), Inventory: b.inventory, Objects: objects, Namespace: b.namespace, Record: b.record,
	}
}

// remove deletes once and keeps the record.
func (b *bench) remove(request reconciler.DeleteRequest) (reconciler.Outcome, error) {
	b.t.Helper()
	outcome, err := b.engine.Delete(b.t.Context(), request)
	b.inventory = outcome.Inventory
	return outcome, err
}

// answer writes the value on which the readiness of an object depends.
func (b *bench) answer(name, value string) {
	b.t.Helper()
	live := b.get(name)
	live.Data["value"] = value
	if err := b.Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
}

// whenYes makes an object that is ready when its value is "yes".
const whenYes = `self.data.value == "yes"`

// asksIf makes an object that is ready once another client sets the value, and
// that no client sets back.
func asksIf(name, runOn string) *unstructured.Unstructured {
	return config(name, "no", "run-on", runOn, "ready-when", whenYes, "ignore-fields", "/data/value")
}

func TestObjectsRunBeforeAndAfterTheDeletionOnce(t *testing.T) {
	b := newBench(t)
	first, last := asksIf("first", "pre-delete"), asksIf("last", "post-delete")
	b.mustApply(config("a", "1"), first, last)
	if b.get("first") != nil || b.get("last") != nil || !b.inventory.DeleteHooks || len(b.inventory.Items) != 1 {
		t.Fatalf("they were installed, or not noted: %+v", b.inventory)
	}

	expect := func(step string, done bool, present ...string) {
		t.Helper()
		outcome, err := b.remove(b.deletion(config("a", "1"), first, last))
		if err != nil || outcome.Done() != done {
			t.Fatalf("%s: %v, waiting for %v", step, err, outcome.Waiting)
		}
		for _, name := range []string{"a", "first", "last"} {
			if want := slices.Contains(present, name); (b.get(name) != nil) != want {
				t.Fatalf("%s: %s is there: %t", step, name, !want)
			}
		}
	}
	expect("begin", false, "a", "first")
	expect("again", false, "a", "first")
	b.answer("first", "yes")
	expect("the first is ready", false, "last")
	b.answer("last", "yes")
	expect("the last is ready", true)
	if len(b.inventory.Items) > 0 || b.inventory.DeleteHooks {
		t.Errorf("the record is %+v", b.inventory)
	}
}

func TestADeletionWithoutTheRenderedObjectsTouchesNothing(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"), asksIf("first", "pre-delete"))
	_, err := b.remove(b.deletion())
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid || !strings.Contains(err.Error(), engineName+`/skip-delete-hooks: "true"`) {
		t.Fatalf("got %v", err)
	}
	if b.get("a") == nil || len(b.inventory.Items) != 1 || !b.inventory.DeleteHooks {
		t.Fatal("something was removed")
	}
	request := b.deletion()
	request.SkipHooks = true
	if outcome, err := b.remove(request); err != nil || !outcome.Done() || b.get("a") != nil || b.inventory.DeleteHooks {
		t.Fatalf("skipped: %v, waiting for %v", err, outcome.Waiting)
	}
}

func TestAFailedHookIsNamedAndHoldsTheDeletion(t *testing.T) {
	b := newBench(t)
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "backup", Annotations: map[string]string{engineName + "/run-on": "pre-delete"}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main", Image: "example.com/backup"}},
		}}},
	}
	b.mustApply(config("a", "1"), job)
	if _, err := b.remove(b.deletion(job)); err != nil {
		t.Fatal(err)
	}
	live := &batchv1.Job{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: "backup"}, live); err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(time.Now())
	live.Status.StartTime = &now
	live.Status.Conditions = []batchv1.JobCondition{
		{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "it tried too often"},
		{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "it tried too often"},
	}
	if err := b.Status().Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	_, err := b.remove(b.deletion(job))
	failed, is := errors.AsType[*reconciler.HookFailedError](err)
	if !is || failed.Object != "Job "+b.namespace+"/backup" || !strings.Contains(err.Error(), "it tried too often") {
		t.Fatalf("got %v, want a HookFailedError", err)
	}
	if b.get("a") == nil {
		t.Fatal("the deletion went on")
	}
}
