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
)

func pod(name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}}
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

func configError(message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: message}}
}

func TestTheWorstFindingIsReturned(t *testing.T) {
	crashing := container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}})
	tests := []struct {
		name string
		pods []*corev1.Pod
		want string
	}{
		{"no pods", nil, ""},
		{"a running pod", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		})}, ""},
		{"an image that cannot be pulled, without the runtime's message", []*corev1.Pod{pod("a", container(waitingFor("ImagePullBackOff")))}, "pod a: ImagePullBackOff"},
		{"it is the image of the pod's spec that is named", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			container(waitingFor("ErrImagePull"))(p)
			p.Spec.Containers = []corev1.Container{{Name: "sidecar", Image: "registry.example.com/proxy:1"}, {Name: "web", Image: "registry.example.com/web:typo"}}
		})}, "pod a: ErrImagePull: image registry.example.com/web:typo"},
		{"the image of an init container", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "not an image"}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: waitingFor("InvalidImageName")}}
		})}, "pod a: InvalidImageName: image not an image"},
		{"a container that crashes", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 3}
		})}, "pod a: CrashLoopBackOff (exit code 3)"},
		{"a container that uses too much memory", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.Spec.Containers = []corev1.Container{{Name: "web", Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}}}
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
		})}, "pod a: CrashLoopBackOff (exit code 137, OOMKilled: the memory limit is 64Mi)"},
		{"a Job that uses too much memory", []*corev1.Pod{pod("a", container(corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"},
		}))}, "pod a: container web ended with exit code 137, OOMKilled"},
		{"a Secret that does not exist", []*corev1.Pod{pod("a", container(configError(`secret "db" not found`)))},
			`pod a: CreateContainerConfigError: secret "db" not found`},
		{"a key that does not exist", []*corev1.Pod{pod("a", container(configError("couldn't find key url in Secret shop/db")))},
			"pod a: CreateContainerConfigError: couldn't find key url in Secret shop/db"},
		{"another message of the runtime is not shown", []*corev1.Pod{pod("a", container(configError("hunter2")))}, "pod a: CreateContainerConfigError"},
		{"an init container that failed", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "init", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waitingFor("PodInitializing")}}
		})}, "pod a: container init ended with exit code 1"},
		{"a pod that finds no node", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable",
				Message: "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available"}}
		})}, "pod a: Unschedulable: 0/2 nodes are available: 2 Insufficient cpu"},
		{"an evicted pod", []*corev1.Pod{pod("a", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" })}, "pod a: Evicted"},
		{"the worst comes before the first", []*corev1.Pod{pod("a", container(waitingFor("ContainerCreating"))), pod("b", crashing)}, "pod b: CrashLoopBackOff"},
		{"of equals the first by name", []*corev1.Pod{pod("b", crashing), pod("a", crashing)}, "pod a: CrashLoopBackOff"},
		{"a probe that fails", []*corev1.Pod{pod("a", container(corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}))}, "pod a: container web is not ready"},
		{"a pod that is being deleted does not count", []*corev1.Pod{pod("a", func(p *corev1.Pod) {
			crashing(p)
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		})}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var pods []corev1.Pod
			for _, p := range test.pods {
				pods = append(pods, *p)
			}
			got := ""
			if worst, found := Worst(pods); found {
				got = worst.String()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
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
			got, _ := Worst([]corev1.Pod{*pod("a", test.change)})
			test.want.Pod, test.want.severity = "a", broken
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Finding{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
