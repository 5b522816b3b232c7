// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func jobIs(j *batchv1.Job, kind batchv1.JobConditionType) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

func jobFails(t *testing.T, s scene) {
	template := podTemplate("task:1")
	template.Annotations["podsim.corbel.run/exit-code"] = "7"
	j := job(template)
	s.create(t, j)
	s.until(t, j, func() bool { return jobIs(j, batchv1.JobFailed) })
	if pod := s.pods(t)[0]; pod.Status.ContainerStatuses[0].State.Terminated.ExitCode != 7 {
		t.Errorf("the pod ended like this: %+v, want exit code 7", pod.Status)
	}
}

func pod(name, image string) *corev1.Pod {
	template := podTemplate(image)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: template.Annotations},
		Spec:       template.Spec,
	}
}

func brokenImageReportsItsReason(t *testing.T, s scene) {
	broken, annotated := pod("broken", "web:broken"), pod("annotated", "web:1")
	annotated.Annotations["podsim.corbel.run/waiting"] = "CreateContainerError"
	s.create(t, broken, annotated)
	for p, want := range map[*corev1.Pod]string{broken: "ImagePullBackOff", annotated: "CreateContainerError"} {
		s.until(t, p, func() bool {
			return p.Status.Phase == corev1.PodPending && len(p.Status.ContainerStatuses) == 1 &&
				p.Status.ContainerStatuses[0].State.Waiting != nil && p.Status.ContainerStatuses[0].State.Waiting.Reason == want
		})
	}
	// A pod that never ran goes, too.
	s.delete(t, broken)
	s.untilGone(t, broken)
}

func initContainersRun(t *testing.T, s scene) {
	p := pod("initialised", "web:1")
	p.Spec.InitContainers = []corev1.Container{
		{Name: "first", Image: "init:1"},
		{Name: "sidecar", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
	}
	p.Finalizers = []string{"corbel.run/test"}
	s.create(t, p)
	s.until(t, p, func() bool {
		return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) && p.Status.InitContainerStatuses[0].State.Terminated != nil && p.Status.InitContainerStatuses[1].State.Running != nil
	})
	// A finalizer holds the pod, but its containers end.
	s.delete(t, p)
	s.until(t, p, func() bool { return p.Status.Phase == corev1.PodFailed && p.DeletionTimestamp != nil })
	withoutFinalizers := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(s.Patch(t.Context(), p, withoutFinalizers)); err != nil {
		t.Fatal(err)
	}
	s.untilGone(t, p)
}

func serviceGetsAnAddress(t *testing.T, s scene) {
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "front"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: selector.MatchLabels, Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	s.create(t, service)
	s.until(t, service, func() bool {
		ingress := service.Status.LoadBalancer.Ingress
		return len(ingress) == 1 && ingress[0].IP != ""
	})
	service.Spec.Type = corev1.ServiceTypeClusterIP
	if err := s.Update(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	s.until(t, service, func() bool { return len(service.Status.LoadBalancer.Ingress) == 0 })
}

func namespaceGoes(t *testing.T, s scene) {
	j := job(podTemplate("task:1"))
	j.Spec.Template.Annotations["podsim.corbel.run/run-for"] = "1h"
	bare := pod("bare", "web:1")
	s.create(t, j, bare, claim("data", ""), configMap("settings"))
	s.until(t, bare, func() bool { return bare.Status.Phase == corev1.PodRunning })
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	s.delete(t, namespace)
	s.untilGone(t, namespace)
}
