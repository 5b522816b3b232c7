// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/report"
)

func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"app": "api"}}}
	if change != nil {
		change(p)
	}
	return p
}

func container(state corev1.ContainerState) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "web", State: state})
	}
}

func waitingFor(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "pulling with password hunter2"}}
}

// counter counts the lists of a reader, and can fail them.
type counter struct {
	client.Reader
	lists int
	err   error
}

func (c *counter) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	c.lists++
	if c.err != nil {
		return c.err
	}
	return c.Reader.List(ctx, list, options...)
}

func TestFailureReasonsAreReadRarely(t *testing.T) {
	now := time.Unix(1000, 0)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
		Spec:       appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}},
	}
	other := pod("z", container(waitingFor("ErrOther")))
	other.Labels = map[string]string{"app": "other"}
	cluster := fake.NewClientBuilder().WithScheme(scheme.Scheme).
		WithObjects(deployment, other, pod("api-x", container(waitingFor("ImagePullBackOff")))).Build()
	reader := &counter{Reader: cluster}
	var c FailureReasons
	waits := []report.Wait{
		waitFor("apps/Deployment shop/api", "NotReady", "0 of 1"),
		waitFor("/ConfigMap shop/x", "NotReady", ""),
		waitFor("apps/StatefulSet shop/later", "Order", ""),
	}
	const id, reason = "apps/Deployment shop/api", "pod api-x: ImagePullBackOff"
	step := func(after time.Duration, wantLists int, wantText string) {
		t.Helper()
		now = now.Add(after)
		if text := c.Explain(t.Context(), now, waits, reader)[id]; text != wantText || reader.lists != wantLists {
			t.Errorf("after %s more: %q after %d lists, want %q after %d", after, text, reader.lists, wantText, wantLists)
		}
	}
	step(0, 0, "")
	step(2*time.Second, 0, "")
	step(time.Second, 1, reason)
	step(5*time.Second, 1, reason)
	step(5*time.Second, 2, reason)
	reader.err = errors.New("forbidden")
	step(10*time.Second, 3, "")
	step(time.Second, 3, "")
	reader.err = nil

	// Ready in between: the delay starts again.
	c.Explain(t.Context(), now, waits[1:], reader)
	step(time.Minute, 3, "")
	step(3*time.Second, 4, reason)
	if c.Explain(t.Context(), now, nil, reader); c != nil {
		t.Error("what is not waited for any more is remembered")
	}
}

func TestTheReasonOfAWorkloadWhosePodsAreRefused(t *testing.T) {
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	event := func(name, uid, reason, message string, last int64) *corev1.Event {
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Reason: reason, Message: message,
			InvolvedObject: corev1.ObjectReference{UID: types.UID(uid)}, LastTimestamp: at(last),
		}
	}
	meta := metav1.ObjectMeta{Namespace: "shop", Name: "api", UID: "1"}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}
	refused := []client.Object{
		event("a", "1", "FailedCreate", `Error creating: pods "api-k2x" is forbidden: exceeded quota: small`, 10),
		event("b", "1", "FailedCreate", `create Pod api-0 in StatefulSet api failed error: pods "api-0" is forbidden: violates PodSecurity "restricted"`, 20),
		event("c", "1", "SuccessfulDelete", "deleted", 30),
		event("d", "2", "FailedCreate", "another workload", 30),
	}
	young := pod("api-1", func(p *corev1.Pod) { p.CreationTimestamp = at(25) })
	for name, test := range map[string]struct {
		workload client.Object
		objects  []client.Object
		want     string
	}{
		"StatefulSet": {&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}, refused, `no pod is created: forbidden: violates PodSecurity "restricted"`},
		"DaemonSet":   {&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector}}, refused[:1], "no pod is created: forbidden: exceeded quota: small"},
		"Job": {&batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Selector: selector}}, []client.Object{event("e", "1", "FailedCreate", `Error creating: admission webhook "no.example.com" denied the request: no`, 10)},
			`no pod is created: Error creating: admission webhook "no.example.com" denied the request: no`},
		"StatefulSet with a younger pod":     {&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector}}, append(slices.Clone(refused), young), ""},
		"Deployment, whose condition has it": {&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector}}, refused, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reader := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(test.workload).WithObjects(test.objects...).
				WithIndex(&corev1.Event{}, "involvedObject.uid", func(o client.Object) []string { return []string{string(o.(*corev1.Event).InvolvedObject.UID)} }).
				WithIndex(&corev1.Event{}, "reason", func(o client.Object) []string { return []string{o.(*corev1.Event).Reason} }).Build()
			kind, _, _ := strings.Cut(name, " ")
			group := "apps"
			if kind = strings.TrimSuffix(kind, ","); kind == "Job" {
				group = "batch"
			}
			waits, now := []report.Wait{waitFor(group+"/"+kind+" shop/api", "NotReady", "0 of 1")}, time.Unix(1000, 0)
			var c FailureReasons
			c.Explain(t.Context(), now, waits, reader)
			if got := c.Explain(t.Context(), now.Add(time.Minute), waits, reader)[group+"/"+kind+" shop/api"]; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

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
