// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// ownWorkload returns a workload of apps/v1 with a selector and the rest of its spec as YAML.
func ownWorkload(t *testing.T, kind, name, replicas, minReady, pod string) *unstructured.Unstructured {
	t.Helper()
	text := fmt.Sprintf("apiVersion: apps/v1\nkind: %s\nmetadata: {namespace: shop, name: %s}\nspec: {selector: {matchLabels: {app: api}}, %s %s template: {spec: %s}}",
		kind, name, replicas, minReady, pod)
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: object}
}

// ownPod returns a pod of a controller with containers that started three seconds before the time.
func ownPod(name, kind, owner string, now time.Time, restarts int32, containers ...string) *corev1.Pod {
	p := pod(name, nil)
	p.Labels["pod-template-hash"] = "77"
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: owner, UID: "1", Controller: new(true)}}
	for _, container := range containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container, Ready: true, RestartCount: restarts,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-3 * time.Second))}},
		})
	}
	return p
}

func TestPodsAreListedOnlyForContainersWithoutProbes(t *testing.T) {
	now := time.Unix(1000, 0)
	const bare, probe = "{containers: [{name: web}]}", "{exec: {command: ['true']}}"
	for _, test := range []struct {
		name, kind, replicas, minReady, pod string
		lists                               int
		after                               time.Duration // that it may be available; 0: it is
	}{
		{"one container without probes", "Deployment", "", "", bare, 1, 7 * time.Second},
		{"a liveness probe is none", "Deployment", "", "", "{containers: [{name: web, livenessProbe: " + probe + "}]}", 1, 7 * time.Second},
		{"a readiness probe", "Deployment", "", "", "{containers: [{name: web, readinessProbe: " + probe + "}]}", 0, 0},
		{"a startup probe", "Deployment", "", "", "{containers: [{name: web, startupProbe: " + probe + "}]}", 0, 0},
		{"one of two has a probe", "Deployment", "", "", "{containers: [{name: other, readinessProbe: " + probe + "}, {name: web}]}", 1, 7 * time.Second},
		{"the other of two has a probe", "Deployment", "", "", "{containers: [{name: other}, {name: web, readinessProbe: " + probe + "}]}", 1, 0},
		{"an init container ends by itself", "Deployment", "", "", "{initContainers: [{name: web}], containers: [{name: other, readinessProbe: " + probe + "}]}", 0, 0},
		{"a sidecar does not", "Deployment", "", "", "{initContainers: [{name: web, restartPolicy: Always}], containers: [{name: other, readinessProbe: " + probe + "}]}", 1, 7 * time.Second},
		{"no replicas", "Deployment", "replicas: 0,", "", bare, 0, 0},
		{"some replicas", "StatefulSet", "replicas: 2,", "", bare, 1, 7 * time.Second},
		{"a DaemonSet", "DaemonSet", "", "", bare, 1, 7 * time.Second},
		{"a ReplicaSet", "ReplicaSet", "", "", bare, 1, 7 * time.Second},
		{"a longer time of its own", "Deployment", "", "minReadySeconds: 60,", bare, 1, 57 * time.Second},
		{"a shorter time of its own", "Deployment", "", "minReadySeconds: 2,", bare, 1, 0},
		{"none of its own", "Deployment", "", "minReadySeconds: 0,", bare, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			kind, owner := test.kind, "api"
			if kind == "Deployment" {
				kind, owner = "ReplicaSet", "api-77"
			}
			reader := &counter{Reader: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
				ownPod("api-x", kind, owner, now, 0, "web"), ownPod("migrate", "Job", "migrate", now, 1, "web"), ownPod("api-old-x", "ReplicaSet", "api-old-77", now, 1, "web")).Build()}
			workload := ownWorkload(t, test.kind, "api", test.replicas, test.minReady, test.pod)
			f, _, err := Unavailable(t.Context(), []*unstructured.Unstructured{workload}, 10*time.Second, now, reader)
			if err != nil || reader.lists != test.lists || f.Fallback != test.after || (f.Waiting == "") != (test.after == 0) || (f.Settling == 0) != (test.after == 0) {
				t.Errorf("%d lists, %+v, %v", reader.lists, f, err)
			}
		})
	}
}

func TestTheLastOfSeveralWorkloadsDecides(t *testing.T) {
	now := time.Unix(1000, 0)
	const bare = "{containers: [{name: web}]}"
	workloads := []*unstructured.Unstructured{
		ownWorkload(t, "StatefulSet", "db", "", "minReadySeconds: 60,", bare), ownWorkload(t, "Deployment", "api", "", "", bare), ownWorkload(t, "DaemonSet", "log", "", "minReadySeconds: 3,", bare),
	}
	reader := &counter{Reader: fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(
		ownPod("db-0", "StatefulSet", "db", now, 0, "web"), ownPod("api-x", "ReplicaSet", "api-77", now, 1, "web"), ownPod("log-x", "DaemonSet", "log", now, 1, "web")).Build()}
	f, unread, err := Unavailable(t.Context(), workloads, 10*time.Second, now, reader)
	if want := "StatefulSet shop/db: containers without a readiness probe have to run for 1m0s; pod db-0: container web was started less than 1m0s ago; " +
		"Deployment shop/api: containers without a readiness probe have to run for 10s; pod api-x: container web was restarted less than 10s ago"; f.Waiting != want {
		t.Errorf("message: %s", f.Waiting)
	}
	if err != nil || f.Settling != 0 || f.Fallback != 57*time.Second || reader.lists != 3 || len(unread) > 0 {
		t.Errorf("%d lists, %+v, %v, %v", reader.lists, f, unread, err)
	}

	reader.err = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	if f, unread, err = Unavailable(t.Context(), workloads, 10*time.Second, now, reader); err != nil || f.Waiting != "" || len(unread) != 3 || unread[0].Key.Name != "db" {
		t.Errorf("forbidden: %+v, %v, %v", f, unread, err)
	}
	reader.err = errors.New("the server is down")
	if _, _, err = Unavailable(t.Context(), workloads, 10*time.Second, now, reader); err == nil || !strings.Contains(err.Error(), "list the pods of StatefulSet shop/db: the server is down") {
		t.Errorf("error: %v", err)
	}
}
