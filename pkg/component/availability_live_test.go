// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

// unprobed is a generator of a Deployment without probes, with the image of the spec.
func unprobed(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
	values, _ := parameters.ToUnstructured()["values"].(map[string]any)
	d := deployment()
	d.Spec.Template.Spec.Containers[0].Image = values["image"].(string)
	return []client.Object{d}, nil
}

// rollOut plays the controllers of the Deployment, and reconciles as long as the component waits for it.
func (b *bed) rollOut() (w *widget.Widget, after time.Duration) {
	b.Helper()
	b.until(v1alpha1.StateProcessing)
	live := &appsv1.Deployment{}
	b.check(b.client.Get(b.Context(), b.key("api"), live))
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}}
	b.check(b.client.Status().Update(b.Context(), live))
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		w, result, err := b.reconcile()
		state, _, message := w.Status.GetState()
		if state != v1alpha1.StateProcessing || strings.Contains(message, "have to run for") {
			return w, result.RequeueAfter
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s: %s; %v", state, message, err)
		}
	}
}

// run lets the only pod of the Deployment have a container in the state.
func (b *bed) run(status corev1.ContainerStatus) {
	b.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: b.namespace, Name: "api-1-x", Labels: map[string]string{"app": "api", "pod-template-hash": "1"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "api-1", UID: "1", Controller: new(true)}},
	}, Spec: deployment().Spec.Template.Spec}
	if b.client.Get(b.Context(), client.ObjectKeyFromObject(pod), pod) != nil {
		b.check(b.client.Create(b.Context(), pod))
	}
	status.Name, status.Ready = "api", status.State.Running != nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
	b.check(b.client.Status().Update(b.Context(), pod))
}

// started is a container that was started now, after so many crashes.
func (b *bed) started(restarts int32) corev1.ContainerStatus {
	s := corev1.ContainerStatus{RestartCount: restarts, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(b.forward))}}}
	if restarts > 0 {
		s.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
	}
	return s
}

func TestACrashLoopIsRolledBackAfterTheTimeout(t *testing.T) {
	var hooks int
	options := component.ReconcilerOptions{Revisions: component.RevisionOptions{RollbackOnFailure: true, MinReadySeconds: new(20)}}
	b := newBed(t, manifests.GeneratorFunc(unprobed), options, func(b *bed) {
		b.reconciler.WithPostReconcileHook(func(context.Context, client.Client, *widget.Widget) error { hooks++; return nil })
	})
	message := func(prefix, what string) string {
		return prefix + "Deployment " + b.namespace + "/api: containers without a readiness probe have to run for 20s; pod api-1-x: container api was " + what
	}
	b.create(widget.Spec{Values: map[string]string{"image": "1"}})
	b.run(b.started(0))
	w, after := b.rollOut()
	if state, _, got := w.Status.GetState(); state != v1alpha1.StateProcessing || got != message("", "started less than 20s ago") {
		t.Errorf("%s: %s", state, got)
	}
	if after < 10*time.Second || after > 20*time.Second {
		t.Errorf("it is requeued after %s", after)
	}
	if diff := cmp.Diff([]string{"1 Processing"}, results(w)); diff != "" || hooks > 0 || w.Status.AppliedGeneration != 0 {
		t.Errorf("%d hooks, generation %d, history (-want +got):\n%s", hooks, w.Status.AppliedGeneration, diff)
	}
	b.forward += 21 * time.Second
	if w, _, _ = b.reconcile(); !w.Status.IsReady() || hooks != 1 {
		t.Fatalf("%d hooks; %v", hooks, w.Status.Conditions)
	}

	// At rest, and of a revision that was ready, no pod is read.
	crash := b.started(4)
	crash.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	b.run(crash)
	b.resetRequests()
	b.forward += 11 * time.Minute
	if w, _, _ = b.reconcile(); len(b.sent("pods")) > 0 || !w.Status.IsReady() {
		t.Errorf("at rest: %v, %s", b.sent("pods"), w.Status.State)
	}

	b.update(func(w *widget.Widget) { w.Spec.Values["image"] = "2" })
	b.run(b.started(3))
	w, _ = b.rollOut()
	const restarted = "restarted less than 20s ago, after it ended with exit code 1"
	if state, _, got := w.Status.GetState(); state != v1alpha1.StateProcessing || got != message("", restarted) {
		t.Errorf("%s: %s", state, got)
	}
	b.run(crash)
	b.forward += time.Minute
	w, _, _ = b.reconcile()
	if state, _, got := w.Status.GetState(); state != v1alpha1.StateProcessing || !strings.HasSuffix(got, "; pod api-1-x: CrashLoopBackOff (exit code 1)") {
		t.Errorf("%s: %s", state, got)
	}
	b.forward += 10 * time.Minute
	b.run(b.started(5))
	w, _, _ = b.reconcile()
	if state, reason, got := w.Status.GetState(); state != v1alpha1.StateError || reason != vocabulary.ReasonTimeout || got != message("not ready after 10m0s: ", restarted)+"; rolls back to revision 1" {
		t.Errorf("%s, %s: %s", state, reason, got)
	}
	old := b.started(0)
	old.State.Running.StartedAt = metav1.NewTime(time.Now())
	b.run(old)
	b.reconcile()      // applies the earlier revision
	w, _ = b.rollOut() // ready at once
	if _, reason, got := w.Status.GetState(); reason != vocabulary.ReasonRolledBack {
		t.Errorf("%s: %s", reason, got)
	}
	if diff := cmp.Diff([]string{"3 Ready to 1", "2 Failed", "1 Ready"}, results(w)); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "api"}
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "api"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "api", Image: "nowhere.example.com/api:1"}}},
			},
		},
	}
}

// TestKubectlWaitsForReady lets kubectl wait for components with each of the recorded statuses, and
// compares it with kstatus: of the latest generation, and of one that has changed since.
func TestKubectlWaitsForReady(t *testing.T) {
	e := env.Shared(t)
	installWidgets(t, e)
	var recorded []struct {
		Reason string         `json:"reason"`
		Status map[string]any `json:"status"`
	}
	check(t, yaml.Unmarshal(must(os.ReadFile("internal/verdict/testdata/statuses.yaml"))(t), &recorded))
	c := must(client.New(e.Config(), client.Options{Scheme: newScheme(t)}))(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	check(t, c.Create(t.Context(), namespace))
	t.Cleanup(func() { // operators of other tests would reconcile them
		if err := c.DeleteAllOf(context.Background(), &widget.Widget{}, client.InNamespace(namespace.Name)); err != nil {
			t.Error(err)
		}
	})
	var want []string
	create := func(name string, status map[string]any, change bool) {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": widget.GroupVersion.String(), "kind": "Widget",
			"metadata": map[string]any{"name": name, "namespace": namespace.Name}, "spec": map[string]any{},
		}}
		check(t, c.Create(t.Context(), object))
		if status != nil {
			object.Object["status"] = status
			check(t, c.Status().Update(t.Context(), object))
		}
		if change {
			object.Object["spec"] = map[string]any{"timeout": "1m"}
			check(t, c.Update(t.Context(), object))
		}
		if wantGeneration := map[bool]int64{false: 1, true: 2}[change]; object.GetGeneration() != wantGeneration {
			t.Fatalf("%s has the generation %d", name, object.GetGeneration())
		}
		if must(kstatus.Compute(object))(t).Status == kstatus.CurrentStatus {
			want = append(want, "widget.test.corbel.run/"+name+" condition met")
		}
	}
	create("new", nil, false)
	for _, r := range recorded {
		r.Status["observedGeneration"] = int64(1)
		for _, condition := range r.Status["conditions"].([]any) {
			condition.(map[string]any)["observedGeneration"] = int64(1)
		}
		create(strings.ToLower(r.Reason), r.Status, false)
		create(strings.ToLower(r.Reason)+"-changed", r.Status, true)
	}
	slices.Sort(want)
	command := exec.Command(e.Program("kubectl"), "--kubeconfig", e.Kubeconfig(), "--namespace", namespace.Name, "wait", "--for=condition=Ready", "--timeout=0", "widgets", "--all")
	output, err := command.Output()
	if err == nil {
		t.Error("kubectl wait succeeds, although components are not ready")
	}
	got := strings.Split(strings.TrimSpace(string(output)), "\n")
	slices.Sort(got)
	if !slices.Equal(got, want) || len(want) != 1 {
		t.Errorf("kubectl waits no more for %q, and kstatus reads Current of %q", got, want)
	}
}
