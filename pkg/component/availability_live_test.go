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
	b.check(b.becomeAvailable())
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

// becomeAvailable lets the Deployment be as if all of its pods were ready.
func (b *bed) becomeAvailable() error {
	live := &appsv1.Deployment{}
	if err := b.client.Get(b.Context(), b.key("api"), live); err != nil {
		return err
	}
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}, {Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}}
	return b.client.Status().Update(b.Context(), live)
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

// podLists counts the lists of pods since the last resetRequests.
func (b *bed) podLists() (n int) {
	b.Helper()
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Resource == "pods" && e.Verb == "list" {
			n++
		}
	}
	return n
}

func TestAComponentIsReadyOnceItsContainersHaveRunForSomeTime(t *testing.T) {
	var hooks int
	b := newBed(t, manifests.GeneratorFunc(unprobed), component.ReconcilerOptions{}, func(b *bed) {
		b.reconciler.WithPostReconcileHook(func(context.Context, client.Client, *widget.Widget) error { hooks++; return nil })
	})
	// The timeout does not count for a container that has never ended.
	b.create(widget.Spec{Values: map[string]string{"image": "1"}, TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: 5 * time.Second}}})
	b.run(b.started(0))
	b.resetRequests()
	w, after := b.rollOut()
	_, reason, message := w.Status.GetState()
	if want := "Deployment " + b.namespace + "/api: containers without a readiness probe have to run for 10s; pod api-1-x: container api was started less than 10s ago"; message != want || reason != vocabulary.ReasonProcessing {
		t.Errorf("%s: %s", reason, message)
	}
	if after < 8*time.Second || after > 10*time.Second {
		t.Errorf("it is requeued after %s", after)
	}
	if diff := cmp.Diff([]string{"1 Processing"}, results(w)); diff != "" || hooks > 0 || w.Status.AppliedGeneration != 0 {
		t.Errorf("%d hooks, generation %d, history (-want +got):\n%s", hooks, w.Status.AppliedGeneration, diff)
	}
	b.forward += 7 * time.Second
	w, _, err := b.reconcile()
	if state, _, message := w.Status.GetState(); err != nil || state != v1alpha1.StateProcessing {
		t.Errorf("after the timeout: %s: %s; %v", state, message, err)
	}
	b.forward += 4 * time.Second
	w, _, err = b.reconcile()
	if state, _, message := w.Status.GetState(); err != nil || state != v1alpha1.StateReady || hooks != 1 {
		t.Errorf("%s: %s; %d hooks; %v", state, message, hooks, err)
	}
	if n := b.podLists(); n != 3 {
		t.Errorf("the pods were listed %d times", n)
	}

	// At rest, and of a revision that was ready, nothing is read.
	b.resetRequests()
	crash := corev1.ContainerStatus{RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}}
	b.run(crash)
	for range 3 {
		b.forward += 11 * time.Minute
		w, _, _ = b.reconcile()
	}
	if n := b.podLists(); n > 0 || !w.Status.IsReady() {
		t.Errorf("at rest: %d lists of pods, %s", n, w.Status.State)
	}
}

func TestACrashLoopIsRolledBackAfterTheTimeout(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(unprobed), component.ReconcilerOptions{Revisions: component.RevisionOptions{RollbackOnFailure: true, MinReadySeconds: new(20)}})
	b.create(widget.Spec{Values: map[string]string{"image": "1"}})
	old := b.started(0)
	old.State.Running.StartedAt = metav1.NewTime(time.Now().Add(-time.Hour))
	b.run(old)
	if w, _ := b.rollOut(); !w.Status.IsReady() { // at once
		t.Fatal(w.Status.Conditions)
	}
	b.update(func(w *widget.Widget) { w.Spec.Values["image"] = "2" })
	b.run(b.started(3))
	w, _ := b.rollOut()
	message := func(prefix string) string {
		return prefix + "Deployment " + b.namespace + "/api: containers without a readiness probe have to run for 20s; pod api-1-x: container api was restarted less than 20s ago, after it ended with exit code 1"
	}
	if state, _, got := w.Status.GetState(); state != v1alpha1.StateProcessing || got != message("") {
		t.Errorf("%s: %s", state, got)
	}
	crash := b.started(4)
	crash.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	b.run(crash)
	b.forward += time.Minute
	w, _, _ = b.reconcile()
	if state, _, got := w.Status.GetState(); state != v1alpha1.StateProcessing || !strings.HasSuffix(got, "; pod api-1-x: CrashLoopBackOff (exit code 1)") {
		t.Errorf("%s: %s", state, got)
	}
	b.forward += 10 * time.Minute
	b.run(b.started(5))
	w, _, _ = b.reconcile()
	if state, reason, got := w.Status.GetState(); state != v1alpha1.StateError || reason != vocabulary.ReasonTimeout || got != message("not ready after 10m0s: ")+"; rolls back to revision 1" {
		t.Errorf("%s, %s: %s", state, reason, got)
	}
	old.State.Running.StartedAt = metav1.NewTime(time.Now())
	b.run(old)
	b.reconcile() // applies the earlier revision
	w, _ = b.rollOut()
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

func TestThePodExplainsTheTimeoutAndWhatFailsIsAnError(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(unprobed), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"image": "nowhere.example.com/api:1"}})
	w := b.until(v1alpha1.StateProcessing)
	if _, _, message := w.Status.GetState(); !strings.HasPrefix(message, "Deployment "+b.namespace+"/api: ") || strings.Contains(message, "pod") {
		t.Errorf("message: %s", message)
	}

	// There are no controllers here; so the test plays them.
	b.run(corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "secret"}}})
	b.forward = 4 * time.Second
	b.resetRequests()
	for range 2 { // the pods are listed again after ten seconds
		w, _, err := b.reconcile()
		b.check(err)
		_, _, message := w.Status.GetState()
		if !strings.HasSuffix(message, "; pod api-1-x: ImagePullBackOff: image nowhere.example.com/api:1") || b.podLists() != 1 {
			t.Errorf("message after %d lists of pods: %s", b.podLists(), message)
		}
	}
	b.forward = time.Hour
	w, _, _ = b.reconcile()
	if _, reason, message := w.Status.GetState(); reason != vocabulary.ReasonTimeout || !strings.Contains(message, "; pod api-1-x: ImagePullBackOff: ") {
		t.Errorf("after the timeout: %s: %s", reason, message)
	}
	b.forward = 4 * time.Second

	live := &appsv1.Deployment{}
	b.check(b.client.Get(t.Context(), b.key("api"), live))
	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, UpdatedReplicas: 1, UnavailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse, Reason: "ProgressDeadlineExceeded", Message: "it does not go on"},
		}}
	b.check(b.client.Status().Update(t.Context(), live))
	w = b.until(v1alpha1.StateError) // after the event of the watch
	if state, reason, message := w.Status.GetState(); reason != vocabulary.ReasonObjectFailed ||
		!strings.HasPrefix(message, "Deployment "+b.namespace+"/api: the progress deadline is exceeded, ") {
		t.Errorf("%s, %s: %s", state, reason, message)
	}

	running := b.started(0)
	running.State.Running.StartedAt = metav1.NewTime(time.Now().Add(-time.Hour))
	b.run(running)
	b.check(b.becomeAvailable())
	if w = b.until(v1alpha1.StateReady); w.Status.ProcessingSince != nil {
		t.Error("the timeout goes on while the component is ready")
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
