// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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
