// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// tasks renders a config map for each value, and two Jobs that run the value "task": one
// runs once per manifest, and the other one is purged. All but the latter are recreated
// when they change.
func tasks(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
	objects, err := configMaps(ctx, namespace, name, p)
	annotate := func(object client.Object, annotations ...string) {
		values := map[string]string{}
		for _, annotation := range annotations {
			suffix, value, _ := strings.Cut(annotation, "=")
			values[operatorName+"/"+suffix] = value
		}
		object.SetAnnotations(values)
	}
	var task string
	for _, object := range objects {
		annotate(object, v1alpha1.AnnotationUpdatePolicy+"=recreate")
		if object.GetName() == "task" {
			task = object.(*corev1.ConfigMap).Data["value"]
		}
	}
	job := func(name string) *batchv1.Job {
		return &batchv1.Job{
			TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "run", Image: "task:" + task}},
			}}},
		}
	}
	kept, purged := job("kept"), job("purged")
	annotate(kept, v1alpha1.AnnotationUpdatePolicy+"=recreate", v1alpha1.AnnotationReconcilePolicy+"=once-per-manifest")
	annotate(purged, v1alpha1.AnnotationPurgeOrder+"=0")
	return append(objects, kept, purged), err
}

// complete lets the Jobs that are there end well.
func (b *bed) complete() {
	b.Helper()
	list := &batchv1.JobList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace)))
	for _, job := range list.Items {
		if job.Status.Succeeded > 0 {
			continue
		}
		now := metav1.Now()
		job.Status = batchv1.JobStatus{StartTime: &now, CompletionTime: &now, Succeeded: 1, Conditions: []batchv1.JobCondition{
			{Type: batchv1.JobSuccessCriteriaMet, Status: corev1.ConditionTrue, LastTransitionTime: now},
			{Type: batchv1.JobComplete, Status: corev1.ConditionTrue, LastTransitionTime: now},
		}}
		b.check(b.client.Status().Update(b.Context(), &job))
	}
}

// untilDone runs reconciles, and lets Jobs end, until the component is ready.
func (b *bed) untilDone() *widget.Widget {
	b.Helper()
	for range 3 {
		b.reconcile()
		b.complete()
	}
	return b.until(v1alpha1.StateReady)
}

// lives are the uids of the objects that tasks renders.
func (b *bed) lives() map[string]apitypes.UID {
	b.Helper()
	uids := map[string]apitypes.UID{}
	configMaps, jobs := &corev1.ConfigMapList{}, &batchv1.JobList{}
	b.check(b.client.List(b.Context(), configMaps, client.InNamespace(b.namespace)))
	b.check(b.client.List(b.Context(), jobs, client.InNamespace(b.namespace)))
	for _, configMap := range configMaps.Items {
		uids["ConfigMap "+configMap.Name] = configMap.UID
	}
	for _, job := range jobs.Items {
		uids["Job "+job.Name] = job.UID
	}
	delete(uids, "ConfigMap kube-root-ca.crt")
	return uids
}

func TestAnotherDigestKeyRecreatesNothingAndRunsNothingAgain(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(tasks), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1", "task": "1"}})
	first, before := b.untilDone(), b.lives()
	if len(before) != 4 || before["Job kept"] == "" {
		t.Fatalf("the objects are %v", before)
	}
	anew := func() {
		b.reconciler = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(tasks), component.ReconcilerOptions{Operator: component.OperatorOptions{OperatorNamespace: &b.namespace}})
		b.check(b.reconciler.SetupWithManager(newManager(t, b.env, b.user)))
		b.resetRequests()
	}
	wantKept := func(what string, revision int64, written ...string) {
		t.Helper()
		w := b.untilDone()
		if diff := cmp.Diff(before, b.lives()); diff != "" || w.Status.Revision != revision {
			t.Errorf("%s: revision %d, want %d; uids (-before +now):\n%s", what, w.Status.Revision, revision, diff)
		}
		var updates []string
		for _, write := range b.writes() {
			if !strings.HasPrefix(write, "patch widgets") && !strings.Contains(write, "digest-key") && !strings.Contains(write, "-revisions") {
				updates = append(updates, write)
			}
		}
		slices.Sort(updates)
		if diff := cmp.Diff(written, updates); diff != "" {
			t.Errorf("%s: writes (-want +got):\n%s", what, diff)
		}
		if w.Status.Inventory.Operator.Key == first.Status.Inventory.Operator.Key {
			t.Errorf("%s: the key is the one of before", what)
		}
		for _, item := range w.Status.Inventory.Items {
			if strings.HasPrefix(item.Digest, "?") {
				t.Errorf("%s: the digest of %s %s is %s", what, item.Kind, item.Name, item.Digest)
			}
		}
		b.resetRequests()
		b.reconcile()
		if writes := b.writes(); len(writes) > 0 {
			t.Errorf("%s: writes at rest: %v", what, writes)
		}
	}
	inPlace := []string{"update configmaps a", "update configmaps b", "update configmaps task"}

	anew()
	wantKept("a release in another namespace takes over", first.Status.Revision, inPlace...)

	b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: b.object(operatorName + "-digest-key")}))
	anew()
	wantKept("the key is lost", first.Status.Revision, inPlace...)

	b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: b.object(operatorName + "-digest-key")}))
	b.update(func(w *widget.Widget) { w.Spec.Values["b"] = "2" })
	anew()
	wantKept("the key is lost while the spec changes", first.Status.Revision+1, inPlace...)
	if value, _ := b.configMap("b"); value != "2" {
		t.Errorf("config map b is %q", value)
	}

	b.update(func(w *widget.Widget) { w.Spec.Values["task"] = "2" })
	b.untilDone()
	after := b.lives()
	if after["Job kept"] == before["Job kept"] || after["ConfigMap task"] == before["ConfigMap task"] || after["ConfigMap a"] != before["ConfigMap a"] {
		t.Errorf("after a change of the manifests: %v, before %v", after, before)
	}
	if created := strings.Count(strings.Join(b.writes(), "\n"), "create jobs"); created != 2 {
		t.Errorf("%d Jobs were created for new manifests: %v", created, b.writes())
	}
}
