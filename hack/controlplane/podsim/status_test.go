// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	testTiming = timing{start: 300 * time.Millisecond, run: 200 * time.Millisecond, terminate: 100 * time.Millisecond}
	testBound  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	testIPs    = addresses{host: "192.0.2.1", pod: "10.244.0.1"}
)

// testPod has one container; annotations come in pairs of name and value.
func testPod(policy corev1.RestartPolicy, image string, annotations ...string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u", Generation: 4, Annotations: map[string]string{}},
		Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
	for i := 0; i+1 < len(annotations); i += 2 {
		pod.Annotations[annotationPrefix+annotations[i]] = annotations[i+1]
	}
	return pod
}

func nothing(string, string, string) (keys, bool) { return nil, false }

// brief describes a status in one line: phase, conditions that are True, containers.
func brief(status corev1.PodStatus) string {
	words := []string{string(status.Phase)}
	for _, c := range status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == corev1.PodInitialized || c.Type == corev1.PodReady) {
			words = append(words, string(c.Type))
		}
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for _, c := range list {
			state := "running"
			if c.State.Waiting != nil {
				state = c.State.Waiting.Reason
			}
			if c.State.Terminated != nil {
				state = fmt.Sprintf("%s(%d)", c.State.Terminated.Reason, c.State.Terminated.ExitCode)
			}
			if c.RestartCount > 0 {
				state += fmt.Sprintf("#%d", c.RestartCount)
			}
			words = append(words, c.Name+":"+state)
		}
	}
	return strings.Join(words, " ")
}

func TestNextStatus(t *testing.T) {
	const always, onFailure, never = corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever
	withInit := func(image string) *corev1.Pod {
		pod := testPod(always, "web:1")
		pod.Spec.InitContainers = []corev1.Container{
			{Name: "first", Image: image},
			{Name: "sidecar", Image: "proxy:1", RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
		}
		return pod
	}
	gated := testPod(always, "web:1")
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	opened := gated.DeepCopy()
	opened.Status.Conditions = []corev1.PodCondition{{Type: "example.com/gate", Status: corev1.ConditionTrue}}
	ran := testPod(always, "web:broken")
	ran.Status.Phase = corev1.PodRunning
	done := testPod(never, "task:1")
	done.Status.Phase = corev1.PodSucceeded

	for _, test := range []struct {
		name string
		pod  *corev1.Pod
		at   string
		want string
		next string // when it changes, counted from the binding; empty: never
	}{
		{"containers are created first", testPod(always, "web:1"), "0s", "Pending Initialized main:ContainerCreating", "300ms"},
		{"then they run and are ready", testPod(always, "web:1"), "300ms", "Running Initialized Ready main:running", ""},
		{"ready after a while: not yet", testPod(always, "web:1", "ready-after", "5s"), "5s", "Running Initialized main:running", "5.3s"},
		{"ready after a while: now", testPod(always, "web:1", "ready-after", "5s"), "5.3s", "Running Initialized Ready main:running", ""},
		{"never ready", testPod(always, "web:1", "never-ready", "true"), "1h", "Running Initialized main:running", ""},
		{"waiting for a reason", testPod(always, "web:1", "waiting", "ErrImagePull"), "1h", "Pending Initialized main:ErrImagePull", ""},
		{"waiting between crashes", testPod(always, "web:1", "waiting", "CrashLoopBackOff"), "1h", "Running Initialized main:CrashLoopBackOff#1", ""},
		{"a broken image", testPod(always, "registry/web:broken@sha256:0"), "1h", "Pending Initialized main:ImagePullBackOff", ""},
		{"an image that does not exist", testPod(never, "registry/does-not-exist:1"), "1h", "Pending Initialized main:ImagePullBackOff", ""},
		{"a pod that ran does not become pending again", ran, "1h", "Running Initialized main:ImagePullBackOff", ""},
		{"an annotation that cannot be understood", testPod(always, "web:1", "ready-after", "soon"), "1s", "Pending Initialized main:InvalidSimulation", ""},

		{"a task runs", testPod(never, "task:1"), "300ms", "Running Initialized Ready main:running", "500ms"},
		{"a task ends", testPod(never, "task:1"), "500ms", "Succeeded Initialized main:Completed(0)", ""},
		{"a task runs as long as its annotation says", testPod(onFailure, "task:1", "run-for", "1m"), "1m", "Running Initialized Ready main:running", "1m0.3s"},
		{"a task fails", testPod(never, "task:1", "exit-code", "3"), "500ms", "Failed Initialized main:Error(3)", ""},
		{"a task that failed is started again", testPod(onFailure, "task:1", "exit-code", "3"), "500ms", "Running Initialized main:CrashLoopBackOff", "1.5s"},
		{"and again, after twice the time", testPod(onFailure, "task:1", "exit-code", "3"), "1.7s", "Running Initialized main:CrashLoopBackOff#1", "3.7s"},
		{"and runs in between", testPod(onFailure, "task:1", "exit-code", "3"), "1.6s", "Running Initialized Ready main:running#1", "1.7s"},
		{"a server that ends is started again", testPod(always, "web:1", "exit-code", "0"), "500ms", "Running Initialized main:CrashLoopBackOff", "1.5s"},
		{"what is over stays over", done, "1h", "Succeeded", ""},

		{"init containers first", withInit("init:1"), "0s", "Pending first:PodInitializing sidecar:PodInitializing main:PodInitializing", "300ms"},
		{"then the others; sidecars stay", withInit("init:1"), "1s", "Running Initialized Ready first:Completed(0) sidecar:running main:running", ""},
		{"an init container with a broken image", withInit("init:broken"), "1s", "Pending first:ImagePullBackOff sidecar:PodInitializing main:PodInitializing", ""},

		{"a readiness gate that is closed", gated, "1s", "Running Initialized main:running", ""},
		{"a readiness gate that is open", opened, "1s", "Running Initialized Ready main:running", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			elapsed, err := time.ParseDuration(test.at)
			if err != nil {
				t.Fatal(err)
			}
			status, again, _ := nextStatus(test.pod, testTiming, pastOf(test.pod, testBound), testBound.Add(elapsed), testIPs, nothing)
			if got := brief(status); got != test.want {
				t.Errorf("at %s the pod is\n\t%s, want\n\t%s", test.at, got, test.want)
			}
			next := ""
			if again > 0 {
				next = (elapsed + again).String()
			}
			if next != test.next {
				t.Errorf("the next change is at %q, want %q", next, test.next)
			}
		})
	}
}
