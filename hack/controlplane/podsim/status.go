// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addresses of a pod. The pod's own is given when its containers start.
type addresses struct{ host, pod string }

// A warning is an event of a pod.
type warning struct{ reason, message string }

// nextStatus returns the status that a pod should have now, by its past and by the objects that it refers to, and how long
// that stays true; zero if until something else changes. It adds to the past, and returns what a kubelet would warn of.
func nextStatus(pod *corev1.Pod, t timing, p *past, now time.Time, ips addresses, find lookup) (corev1.PodStatus, time.Duration, []warning) {
	status := *pod.Status.DeepCopy()
	if finished(pod) {
		return status, 0, nil
	}
	m := moment{past: p, pod: pod, behaviour: behaviourOf(pod, t), elapsed: now.Sub(p.bound), find: find}
	warnings, change := m.mount()
	init, initChange, initialised, due := m.initStatuses()
	containers, containersChange := m.statuses(initialised, due)
	change = soonest(change, soonest(initChange, containersChange))
	status.InitContainerStatuses, status.ContainerStatuses = init, containers
	initialised = initialised || len(init) == 0
	status.Phase = phaseOf(pod, init, containers)
	if status.StartTime == nil {
		status.StartTime = new(m.at(0))
	}
	status.HostIP, status.HostIPs = ips.host, []corev1.HostIP{{IP: ips.host}}
	if m.mounted && status.PodIP == "" {
		status.PodIP, status.PodIPs = ips.pod, []corev1.PodIP{{IP: ips.pod}}
	}
	status.ObservedGeneration = pod.Generation
	setConditions(&status, pod, initialised, m.mounted, now)
	return status, max(0, change-m.elapsed), warnings
}

// terminatedStatus returns the status of a pod after its containers were signalled to end: a
// pod has to be over before it goes, or its Job would wait for it.
func terminatedStatus(pod *corev1.Pod, now time.Time) corev1.PodStatus {
	status := *pod.Status.DeepCopy()
	if finished(pod) {
		return status
	}
	const terminatedBySignal = 143
	for i := range status.ContainerStatuses {
		c := &status.ContainerStatuses[i]
		c.Ready, c.Started = false, new(false)
		if c.State.Terminated != nil {
			continue
		}
		terminated := &corev1.ContainerStateTerminated{
			ExitCode: terminatedBySignal, Reason: "Error", ContainerID: c.ContainerID,
			FinishedAt: metav1.NewTime(now.Truncate(time.Second)),
		}
		if c.State.Running != nil {
			terminated.StartedAt = c.State.Running.StartedAt
		}
		c.State = corev1.ContainerState{Terminated: terminated}
	}
	status.Phase = corev1.PodFailed
	status.ObservedGeneration = pod.Generation
	setConditions(&status, pod, true, true, now)
	return status
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// phaseOf sums up the containers as a kubelet does, but that a pod which once ran
// does not become Pending again.
func phaseOf(pod *corev1.Pod, init, containers []corev1.ContainerStatus) corev1.PodPhase {
	if slices.ContainsFunc(init, func(c corev1.ContainerStatus) bool { return c.State.Terminated != nil && !c.Ready }) {
		return corev1.PodFailed // it would wait if it were started again
	}
	var waits, failed bool
	over := len(containers) > 0
	for _, c := range containers {
		waits = waits || (c.State.Waiting != nil && c.LastTerminationState.Terminated == nil)
		over = over && c.State.Terminated != nil
		failed = failed || (c.State.Terminated != nil && c.State.Terminated.ExitCode != 0)
	}
	switch {
	case waits && pod.Status.Phase != corev1.PodRunning:
		return corev1.PodPending
	case over && failed:
		return corev1.PodFailed
	case over:
		return corev1.PodSucceeded
	}
	return corev1.PodRunning
}

// setConditions derives the conditions from the rest of the status; those that
// belong to others stay.
func setConditions(status *corev1.PodStatus, pod *corev1.Pod, initialised, sandbox bool, now time.Time) {
	set := func(kind corev1.PodConditionType, value bool, reason, message string) {
		c := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, ObservedGeneration: pod.Generation}
		if value {
			c.Status = corev1.ConditionTrue
		}
		c.Reason, c.Message = reason, message
		putCondition(status, c, now)
	}
	var initReason, readyReason, readyMessage string
	var unready []string
	for _, c := range status.ContainerStatuses {
		if !c.Ready {
			unready = append(unready, c.Name)
		}
	}
	over := status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed
	switch {
	case over:
		initReason, readyReason = "PodCompleted", "PodCompleted"
	case len(unready) > 0:
		readyReason, readyMessage = "ContainersNotReady", "containers with unready status: ["+strings.Join(unready, " ")+"]"
	}
	if !initialised {
		initReason = "ContainersNotInitialized"
	}
	set(corev1.PodScheduled, true, "", "")
	set(corev1.PodReadyToStartContainers, sandbox && !over, "", "")
	set(corev1.PodInitialized, initialised, initReason, "")
	ready := !over && len(unready) == 0
	set(corev1.ContainersReady, ready, readyReason, readyMessage)
	if gate := closedGate(pod, status); ready && gate != "" {
		ready, readyReason, readyMessage = false, "ReadinessGatesNotReady", "the condition of readiness gate "+gate+" is not True"
	}
	set(corev1.PodReady, ready, readyReason, readyMessage)
}

// closedGate returns the first readiness gate of the pod that is not open.
func closedGate(pod *corev1.Pod, status *corev1.PodStatus) string {
	for _, gate := range pod.Spec.ReadinessGates {
		open := slices.ContainsFunc(status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		})
		if !open {
			return string(gate.ConditionType)
		}
	}
	return ""
}

func putCondition(status *corev1.PodStatus, c corev1.PodCondition, now time.Time) {
	c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	i := slices.IndexFunc(status.Conditions, func(old corev1.PodCondition) bool { return old.Type == c.Type })
	if i < 0 {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = c
}
