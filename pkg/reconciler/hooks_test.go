// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
