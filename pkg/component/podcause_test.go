// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

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
	b := newBed(t, manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		return []client.Object{deployment()}, nil
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: time.Hour}}})
	w := b.until(v1alpha1.StateProcessing)
	if _, _, message := w.Status.GetState(); !strings.HasPrefix(message, "Deployment "+b.namespace+"/api: ") || strings.Contains(message, "pod") {
		t.Errorf("message: %s", message)
	}

	// There are no controllers here; so the test plays them.
	labels := map[string]string{"app": "api"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "api-x", Labels: labels}, Spec: deployment().Spec.Template.Spec}
	b.check(b.client.Create(t.Context(), pod))
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "api", State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "secret"}}}}
	b.check(b.client.Status().Update(t.Context(), pod))

	b.forward = 4 * time.Second
	w, _, err := b.reconcile()
	b.check(err)
	if _, _, message := w.Status.GetState(); !strings.HasSuffix(message, "; pod api-x: ImagePullBackOff: image nowhere.example.com/api:1") {
		t.Errorf("message: %s", message)
	}
	b.resetRequests()
	b.reconcile()
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Resource == "pods" {
			t.Error("the pods were listed again within ten seconds")
		}
	}

	b.forward = time.Hour + time.Second
	w, _, err = b.reconcile()
	b.check(err)
	if state, reason, message := w.Status.GetState(); state != v1alpha1.StateError || reason != vocabulary.ReasonTimeout || !strings.Contains(message, "not ready after 1h0m0s: Deployment") {
		t.Errorf("%s, %s: %s", state, reason, message)
	}

	b.forward = 5 * time.Second
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

	live.Status = appsv1.DeploymentStatus{ObservedGeneration: live.Generation, Replicas: 1, ReadyReplicas: 1, UpdatedReplicas: 1, AvailableReplicas: 1,
		Conditions: []appsv1.DeploymentCondition{
			{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue},
			{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
		}}
	b.check(b.client.Status().Update(t.Context(), live))
	if w = b.until(v1alpha1.StateReady); w.Status.ProcessingSince != nil {
		t.Error("the timeout goes on while the component is ready")
	}
}
