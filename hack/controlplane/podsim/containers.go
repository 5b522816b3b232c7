// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Between its crashes a container waits longer and longer: as a real one does, but
// in seconds instead of minutes.
const (
	firstBackOff = time.Second
	lastBackOff  = 10 * time.Second
)

const crashLoop = "CrashLoopBackOff"

// A moment is a point in a pod's life: how long it has been on its node.
type moment struct {
	pod       *corev1.Pod
	behaviour behaviour
	bound     time.Time
	elapsed   time.Duration
}

// at converts a time in the pod's life to one on the clock, in whole seconds, as the
// API stores it: so a status that we derive equals the same status read back.
func (m moment) at(elapsed time.Duration) metav1.Time {
	return metav1.NewTime(m.bound.Add(elapsed).Truncate(time.Second))
}

// initialised reports whether all init containers do what they have to before the
// others start.
func (m moment) initialised() bool {
	if m.elapsed < m.behaviour.start {
		return len(m.pod.Spec.InitContainers) == 0
	}
	for _, c := range m.pod.Spec.InitContainers {
		if brokenImage(c.Image) {
			return false
		}
	}
	return true
}

// initStatuses returns what the init containers do: one after the other, until one
// cannot start.
func (m moment) initStatuses() []corev1.ContainerStatus {
	var statuses []corev1.ContainerStatus
	stuck := m.elapsed < m.behaviour.start
	for _, c := range m.pod.Spec.InitContainers {
		status := m.blank(c)
		switch {
		case stuck:
			status.State = waiting("PodInitializing", "")
		case brokenImage(c.Image):
			stuck = true
			status.State = imagePull(c.Image)
		case c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways:
			m.runs(&status, 0, m.behaviour.start)
			m.setReady(&status)
		default:
			m.ended(&status, 0, 0, m.behaviour.start, m.behaviour.start)
			status.Ready = true // an init container is ready when it is over
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// statuses returns what the containers proper do, and when that changes; zero if it
// does not.
func (m moment) statuses() (statuses []corev1.ContainerStatus, change time.Duration) {
	for _, c := range m.pod.Spec.Containers {
		status := m.blank(c)
		switch {
		case m.elapsed < m.behaviour.start:
			status.State = waiting(m.creating(), "")
			change = m.behaviour.start
		case !m.initialised():
			status.State = waiting("PodInitializing", "")
		case m.behaviour.waiting != "":
			m.waits(&status)
		case brokenImage(c.Image):
			status.State = imagePull(c.Image)
		default:
			change = max(change, m.live(&status))
		}
		statuses = append(statuses, status)
	}
	return statuses, change
}

func (m moment) creating() string {
	if len(m.pod.Spec.InitContainers) > 0 {
		return "PodInitializing"
	}
	return "ContainerCreating"
}

// waits fills in the status of a container that waits because of an annotation. One
// that waits between crashes has crashed before.
func (m moment) waits(status *corev1.ContainerStatus) {
	if m.behaviour.waiting == crashLoop {
		m.ended(status, 1, cmp.Or(m.behaviour.exitCode, 1), m.behaviour.start, m.behaviour.start)
		status.LastTerminationState = status.State
	}
	status.State = waiting(m.behaviour.waiting, m.behaviour.message)
}

// live fills in the status of a container that could be started: it runs, gets
// ready, perhaps ends, and then is started again or not. It returns when that changes.
func (m moment) live(status *corev1.ContainerStatus) (change time.Duration) {
	b, started, backOff := m.behaviour, m.behaviour.start, firstBackOff
	for restarts := int32(0); ; restarts++ {
		if !b.ends || m.elapsed < started+b.run {
			m.runs(status, restarts, started)
			change = m.getReady(status, started)
			if end := started + b.run; b.ends && (change == 0 || end < change) {
				change = end
			}
			return change
		}
		ended := started + b.run
		if !restarted(m.pod.Spec.RestartPolicy, b.exitCode) {
			m.ended(status, restarts, b.exitCode, started, ended)
			return 0
		}
		next := ended + backOff
		if m.elapsed < next {
			m.ended(status, restarts, b.exitCode, started, ended)
			status.LastTerminationState = status.State
			status.State = waiting(crashLoop, fmt.Sprintf("back-off %s restarting failed container=%s", backOff, status.Name))
			return next
		}
		started, backOff = next, min(2*backOff, lastBackOff)
	}
}

// getReady makes a running container ready if it is time, else says when it is.
func (m moment) getReady(status *corev1.ContainerStatus, started time.Duration) (change time.Duration) {
	ready := started + m.behaviour.readyAfter
	switch {
	case m.behaviour.neverReady:
		return 0
	case m.elapsed < ready:
		return ready
	}
	m.setReady(status)
	return 0
}

// headStart moves the reported start of a container that goes on running into the past. So an operator that waits until containers
// have run for some time concludes at once.
const headStart = time.Hour

func (m moment) setReady(status *corev1.ContainerStatus) {
	status.Ready = true
	if running := status.State.Running; running != nil && !m.behaviour.ends {
		running.StartedAt = metav1.NewTime(running.StartedAt.Add(-headStart))
	}
}

func restarted(policy corev1.RestartPolicy, exitCode int32) bool {
	switch policy {
	case corev1.RestartPolicyNever:
		return false
	case corev1.RestartPolicyOnFailure:
		return exitCode != 0
	}
	return true
}

func (m moment) blank(c corev1.Container) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(false)}
}

func (m moment) runs(status *corev1.ContainerStatus, restarts int32, started time.Duration) {
	status.RestartCount = restarts
	status.ImageID = "podsim://" + status.Image
	status.ContainerID = fmt.Sprintf("podsim://%s/%s/%d", m.pod.UID, status.Name, restarts)
	status.Started = new(true)
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: m.at(started)}}
}

func (m moment) ended(status *corev1.ContainerStatus, restarts, exitCode int32, started, ended time.Duration) {
	m.runs(status, restarts, started)
	status.Started = new(false)
	reason := "Completed"
	if exitCode != 0 {
		reason = cmp.Or(m.behaviour.reason, "Error")
	}
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: exitCode, Reason: reason, ContainerID: status.ContainerID,
		StartedAt: m.at(started), FinishedAt: m.at(ended),
	}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func imagePull(image string) corev1.ContainerState {
	return waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: not found", image))
}
