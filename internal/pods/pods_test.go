// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/test/check"
)

func pod(name string, change func(*corev1.Pod)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(&p)
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

func configError(message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: message}}
}

func TestTheWorstFindingIsReturned(t *testing.T) {
	crashing := container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})
	for _, test := range []struct {
		name string
		pods []corev1.Pod
		want string
	}{
		{"no pods", nil, ""},
		{"a running pod", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})}, ""},
		{"an image that cannot be pulled, without the runtime's message", []corev1.Pod{pod("a", container(waitingFor("ImagePullBackOff")))}, "pod a: ImagePullBackOff"},
		{"it is the image of the pod's spec that is named", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			container(waitingFor("ErrImagePull"))(p)
			p.Spec.Containers = []corev1.Container{{Name: "sidecar", Image: "registry.example.com/proxy:1"}, {Name: "web", Image: "registry.example.com/web:typo"}}
		})}, "pod a: ErrImagePull: image registry.example.com/web:typo"},
		{"the image of an init container", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "not an image"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: waitingFor("InvalidImageName")}}
		})}, "pod a: InvalidImageName: image not an image"},
		{"a container that crashes", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3}
		})}, "pod a: CrashLoopBackOff (exit code 3)"},
		{"a container that uses too much memory", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}}}
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		})}, "pod a: CrashLoopBackOff (exit code 137, OOMKilled: the memory limit is 64Mi)"},
		{"a Job that uses too much memory", []corev1.Pod{pod("a", container(corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
		}))}, "pod a: container web ended with exit code 137, OOMKilled"},
		{"a Secret that does not exist", []corev1.Pod{pod("a", container(configError(`secret "db" not found`)))},
			`pod a: CreateContainerConfigError: secret "db" not found`},
		{"a key that does not exist", []corev1.Pod{pod("a", container(configError("couldn't find key url in Secret shop/db")))},
			"pod a: CreateContainerConfigError: couldn't find key url in Secret shop/db"},
		{"another message of the runtime is not shown", []corev1.Pod{pod("a", container(configError("hunter2")))}, "pod a: CreateContainerConfigError"},
		{"an init container that failed", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waitingFor("PodInitializing")}}
		})}, "pod a: container init ended with exit code 1"},
		{"a pod that finds no node", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available"}}
		})}, "pod a: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu"},
		{"an evicted pod", []corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" })}, "pod a: Evicted"},
		{"the worst comes before the first", []corev1.Pod{pod("a", container(waitingFor("ContainerCreating"))), pod("b", crashing)}, "pod b: CrashLoopBackOff"},
		{"of equals the first by name", []corev1.Pod{pod("b", crashing), pod("a", crashing)}, "pod a: CrashLoopBackOff"},
		{"a probe that fails", []corev1.Pod{pod("a", container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))}, "pod a: container web is not ready"},
		{"a pod that is being deleted does not count", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		})}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := ""
			if worst, found := Worst(test.pods); found {
				got = worst.String()
			}
			check.Same(t, test.want, got)
		})
	}
}

func TestFindingsAreClassified(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   Finding
	}{
		"a claim without a volume": {func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims", LastTransitionTime: metav1.Unix(7, 0)}}
		}, Finding{Problem: VolumeUnbound, Since: time.Unix(7, 0), Text: "Unschedulable: 0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims"}},
		"a crash": {func(p *corev1.Pod) {
			container(waitingFor("CrashLoopBackOff"))(p)
			p.Status.ContainerStatuses[0].RestartCount = 4
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, FinishedAt: metav1.Unix(9, 0)}
		}, Finding{Problem: Crash, Container: "web", Since: time.Unix(9, 0), Restarts: 4, Text: "CrashLoopBackOff (exit code 1)"}},
		"a missing key": {container(configError("couldn't find key url in ConfigMap shop/db")), Finding{
			Problem: MissingReference, Container: "web", Reference: &Reference{Kind: "ConfigMap", Name: "db", Key: "url"},
			Text: "CreateContainerConfigError: couldn't find key url in ConfigMap shop/db"}},
		"a missing ConfigMap": {container(configError(`configmap "db" not found`)), Finding{
			Problem: MissingReference, Container: "web", Reference: &Reference{Kind: "ConfigMap", Name: "db"},
			Text: `CreateContainerConfigError: configmap "db" not found`}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := Worst([]corev1.Pod{pod("a", test.change)})
			test.want.Pod, test.want.severity = "a", broken
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Finding{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

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
		pods    []corev1.Pod
		want    string
		problem Problem
		after   time.Duration // that they may be available; 0: they are
	}{
		{name: "no pods"},
		{name: "runs for long enough", pods: []corev1.Pod{pod("a", web(running(10*time.Second), 0, nil))}},
		{"has just started", []corev1.Pod{pod("a", web(running(3*time.Second), 0, nil))}, "pod a: container web was started less than 10s ago", Starting, 7 * time.Second},
		{"started by a clock that is ahead", []corev1.Pod{pod("a", web(running(-time.Hour), 0, nil))}, "pod a: container web was started less than 10s ago", Starting, minReady},
		{"was restarted", []corev1.Pod{pod("a", web(running(9*time.Second), 1, ended))},
			"pod a: container web was restarted less than 10s ago, after it ended with exit code 3", Crash, time.Second},
		{"was restarted, and nobody knows why", []corev1.Pod{pod("a", web(running(9*time.Second), 1, nil))}, "pod a: container web was restarted less than 10s ago", Crash, time.Second},
		{"was restarted because of its memory", []corev1.Pod{pod("a", web(running(0), 1, &corev1.ContainerStateTerminated{ExitCode: 137, Reason: outOfMemory}))},
			"pod a: container web was restarted less than 10s ago, after it ended with exit code 137, OOMKilled", Crash, minReady},
		{name: "was restarted long ago", pods: []corev1.Pod{pod("a", web(running(time.Hour), 9, ended))}},
		{"waits between crashes", []corev1.Pod{pod("a", crashing)}, "pod a: CrashLoopBackOff (exit code 3)", Crash, minReady},
		{"waits after a crash for another reason", []corev1.Pod{pod("a", web(waiting("CreateContainerError"), 1, ended))}, "pod a: CreateContainerError (exit code 3)", Crash, minReady},
		{name: "was not started yet, as Kubernetes knows", pods: []corev1.Pod{pod("a", web(waiting("ContainerCreating"), 0, nil))}},
		{"has ended with an error", []corev1.Pod{pod("a", web(corev1.ContainerState{Terminated: ended}, 0, nil))}, "pod a: container web ended with exit code 3", Crash, minReady},
		{"has ended without an error", []corev1.Pod{pod("a", web(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}, 0, nil))},
			"pod a: container web ended with exit code 0", Crash, minReady},
		{name: "a container with a probe", pods: []corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Status.ContainerStatuses[0].Name = "probed"
		})}},
		{"a sidecar", []corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Status.InitContainerStatuses, p.Status.ContainerStatuses = p.Status.ContainerStatuses, nil
		})}, "pod a: CrashLoopBackOff (exit code 3)", Crash, minReady},
		{name: "a pod that is being deleted", pods: []corev1.Pod{pod("a", and(crashing, func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now)) }))}},
		{name: "a pod that was evicted", pods: []corev1.Pod{pod("a", and(crashing, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }))}},
		{name: "a pod that has ended", pods: []corev1.Pod{pod("a", and(crashing, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }))}},
		{"the youngest decides", []corev1.Pod{pod("b", web(running(2*time.Second), 0, nil)), pod("a", web(running(5*time.Second), 0, nil))},
			"pod a: container web was started less than 10s ago", Starting, 8 * time.Second},
		{"the worst is named", []corev1.Pod{pod("a", web(running(2*time.Second), 0, nil)), pod("b", web(running(5*time.Second), 1, nil))},
			"pod b: container web was restarted less than 10s ago", Crash, 8 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			worst, until := Unavailable(test.pods, []string{"web"}, minReady, now)
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
