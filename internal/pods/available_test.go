// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestContainersHaveToRunForSomeTime(t *testing.T) {
	const minReady = 10 * time.Second
	now := time.Unix(1000, 0)
	ended := &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}
	running := func(ago time.Duration) corev1.ContainerState {
		return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-ago))}}
	}
	web := func(state corev1.ContainerState, restarts int32, last *corev1.ContainerStateTerminated) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
				Name: "web", Ready: state.Running != nil, State: state, RestartCount: restarts, LastTerminationState: corev1.ContainerState{Terminated: last}})
		}
	}
	and := func(all ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, change := range all {
				change(p)
			}
		}
	}
	waiting := func(reason string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: "hunter2"}}
	}
	crashing := web(waiting("CrashLoopBackOff"), 4, ended)
	for _, test := range []struct {
		name    string
		pods    []*corev1.Pod
		want    string
		problem Problem
		after   time.Duration // that they may be available; 0: they are
	}{
		{name: "no pods"},
		{name: "runs for long enough", pods: []*corev1.Pod{pod("a", web(running(10*time.Second), 0, nil))}},
		{"has just started", []*corev1.Pod{pod("a", web(running(3*time.Second), 0, nil))}, "pod a: container web was started less than 10s ago", Starting, 7 * time.Second},
		{"started by a clock that is ahead", []*corev1.Pod{pod("a", web(running(-time.Hour), 0, nil))}, "pod a: container web was started less than 10s ago", Starting, minReady},
		{"was restarted", []*corev1.Pod{pod("a", web(running(9*time.Second), 1, ended))},
			"pod a: container web was restarted less than 10s ago, after it ended with exit code 3", Crash, time.Second},
		{"was restarted, and nobody knows why", []*corev1.Pod{pod("a", web(running(9*time.Second), 1, nil))}, "pod a: container web was restarted less than 10s ago", Crash, time.Second},
		{"was restarted because of its memory", []*corev1.Pod{pod("a", web(running(0), 1, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: outOfMemory}))},
			"pod a: container web was restarted less than 10s ago, after it ended with exit code 137, OOMKilled", Crash, minReady},
		{name: "was restarted long ago", pods: []*corev1.Pod{pod("a", web(running(time.Hour), 9, ended))}},
		{"waits between crashes", []*corev1.Pod{pod("a", crashing)}, "pod a: CrashLoopBackOff (exit code 3)", Crash, minReady},
		{"waits after a crash for another reason", []*corev1.Pod{pod("a", web(waiting("CreateContainerError"), 1, ended))}, "pod a: CreateContainerError (exit code 3)", Crash, minReady},
		{name: "was not started yet, as Kubernetes knows", pods: []*corev1.Pod{pod("a", web(waiting("ContainerCreating"), 0, nil))}},
		{"has ended with an error", []*corev1.Pod{pod("a", web(corev1.ContainerState{Terminated: ended}, 0, nil))}, "pod a: container web ended with exit code 3", Crash, minReady},
		{"has ended without an error", []*corev1.Pod{pod("a", web(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, 0, nil))},
			"pod a: container web ended with exit code 0", Crash, minReady},
		{name: "a container with a probe", pods: []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Status.ContainerStatuses[0].Name = "probed"
		})}},
		{"a sidecar", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		})}, "pod a: CrashLoopBackOff (exit code 3)", Crash, minReady},
		{name: "a pod that is being deleted", pods: []*corev1.Pod{pod("a", and(crashing, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) }))}},
		{name: "a pod that was evicted", pods: []*corev1.Pod{pod("a", and(crashing, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))}},
		{name: "a pod that has ended", pods: []*corev1.Pod{pod("a", and(crashing, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))}},
		{"the youngest decides", []*corev1.Pod{pod("b", web(running(2*time.Second), 0, nil)), pod("a", web(running(5*time.Second), 0, nil))},
			"pod a: container web was started less than 10s ago", Starting, 8 * time.Second},
		{"the worst is named", []*corev1.Pod{pod("a", web(running(2*time.Second), 0, nil)), pod("b", web(running(5*time.Second), 1, nil))},
			"pod b: container web was restarted less than 10s ago", Crash, 8 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			var pods []corev1.Pod
			for _, p := range test.pods {
				pods = append(pods, *p)
			}
			worst, until := Unavailable(pods, []string{"web"}, minReady, now)
			got, after := "", time.Duration(0)
			if !until.IsZero() {
				got, after = worst.String(), until.Sub(now)
			}
			if got != test.want || after != test.after || got != "" && worst.Problem != test.problem {
				t.Errorf("got %q (%s) for %s, want %q (%s) for %s", got, worst.Problem, after, test.want, test.problem, test.after)
			}
		})
	}
}
