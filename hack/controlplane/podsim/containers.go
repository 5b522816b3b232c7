// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"cmp"
	"fmt"
	"slices"
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

// A past is what happened to a pod and does not follow from the time. Times count from its binding.
type past struct {
	bound       time.Time
	mounted     bool // its volumes are
	start       time.Duration
	initialised bool
	runs        map[string]run  // the latest start of each container
	held        map[string]bool // the containers, and "" for the volumes, that waited for an object when last looked at
}

// A run is a start of a container.
type run struct {
	restarts int32
	started  time.Duration
}

// pastOf reads what happened to a pod from its status. Containers that run are not held to what they refer to.
func pastOf(pod *corev1.Pod, bound time.Time) *past {
	p := &past{bound: bound, runs: map[string]run{}, held: map[string]bool{}}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		var started metav1.Time
		switch {
		case c.State.Running != nil:
			if started = c.State.Running.StartedAt; started.Time.Before(bound) {
				started.Time = started.Add(headStart)
			}
		case c.State.Terminated != nil:
			started = c.State.Terminated.StartedAt
		case c.LastTerminationState.Terminated != nil:
			started = c.LastTerminationState.Terminated.StartedAt
		default:
			continue
		}
		p.runs[c.Name] = run{restarts: c.RestartCount, started: max(0, started.Sub(bound))}
		p.mounted = true
	}
	p.initialised = slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { _, ran := p.runs[c.Name]; return ran })
	return p
}

// A moment is a point in a pod's life: how long it has been on its node.
type moment struct {
	*past
	pod       *corev1.Pod
	behaviour behaviour
	elapsed   time.Duration
	find      lookup
}

// at converts a time in the pod's life to one on the clock, in whole seconds, as the
// API stores it: so a status that we derive equals the same status read back.
func (m moment) at(elapsed time.Duration) metav1.Time {
	return metav1.NewTime(m.bound.Add(elapsed).Truncate(time.Second))
}

// soonest returns the first of two times at which something changes. Zero is never.
func soonest(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// mount mounts the volumes, if it is time. If an object is missing, it returns when to look again. It also returns what a
// kubelet warns of before it starts containers.
func (m moment) mount() (warnings []warning, change time.Duration) {
	if m.mounted {
		return nil, 0
	}
	if m.elapsed < m.behaviour.start {
		return nil, m.behaviour.start
	}
	for _, problem := range m.find.volumesProblems(m.pod) {
		warnings = append(warnings, warning{"FailedMount", problem})
	}
	if len(warnings) > 0 {
		m.held[""] = true
		return warnings, m.elapsed + lookAgain
	}
	m.mounted, m.start = true, m.startOf("", m.behaviour.start)
	if problem := m.find.pullSecretsProblem(m.pod); problem != "" {
		warnings = append(warnings, warning{"FailedToRetrieveImagePullSecret", problem})
	}
	return warnings, 0
}

// startOf returns when a container starts that is due, or the pod with an empty name: late if it was held.
func (m moment) startOf(name string, due time.Duration) time.Duration {
	if m.held[name] {
		delete(m.held, name)
		return m.elapsed
	}
	return due
}

// initStatuses returns what the init containers do, one after the other, until one cannot start or fails, and when that
// changes. It also returns whether they let the other containers start, and at which time those are due.
func (m moment) initStatuses() (statuses []corev1.ContainerStatus, change time.Duration, ok bool, due time.Duration) {
	ok, due = m.mounted, m.start
	for _, c := range m.pod.Spec.InitContainers {
		status := m.blank(c)
		switch {
		case !ok:
			status.State = waiting("PodInitializing", "")
		case brokenImage(c.Image):
			ok, status.State = false, imagePull(c.Image)
		default:
			e := m.behaviour.endOfInit(c)
			if m.initialised && !isSidecar(c) {
				e.exitCode = 0 // it is over, whatever annotations say now
			}
			change = soonest(change, m.live(&status, c, e, due))
			ok, due = m.lead(&status, c, e)
		}
		statuses = append(statuses, status)
	}
	m.initialised = m.initialised || ok
	return statuses, change, ok, due
}

// lead reports whether an init container lets the next one start, and since when. It is ready then.
func (m moment) lead(status *corev1.ContainerStatus, c corev1.Container, e end) (ok bool, since time.Duration) {
	latest, ran := m.runs[c.Name]
	if isSidecar(c) {
		if status.State.Running != nil {
			m.setReady(status, e)
		}
		return ran, latest.started
	}
	ended := status.State.Terminated
	status.Ready = ended != nil && ended.ExitCode == 0
	return status.Ready, latest.started + e.run
}

// statuses returns what the containers proper do, and when that changes; zero if it
// does not. They are due at a time if the init containers let them start.
func (m moment) statuses(initialised bool, due time.Duration) (statuses []corev1.ContainerStatus, change time.Duration) {
	for _, c := range m.pod.Spec.Containers {
		status := m.blank(c)
		switch {
		case !m.mounted:
			status.State = waiting(m.creating(), "")
		case !initialised:
			status.State = waiting("PodInitializing", "")
		case m.behaviour.waiting != "":
			m.waits(&status)
		case brokenImage(c.Image):
			status.State = imagePull(c.Image)
		default:
			e := m.behaviour.endOf(c.Name)
			change = soonest(change, m.live(&status, c, e, due))
			if status.State.Running != nil {
				change = soonest(change, m.getReady(&status, e, m.runs[c.Name].started))
			}
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
		e := m.behaviour.end
		e.exitCode = cmp.Or(e.exitCode, 1)
		m.ended(status, e, run{restarts: 1, started: m.start}, m.start)
		status.LastTerminationState = status.State
	}
	status.State = waiting(m.behaviour.waiting, m.behaviour.message)
}

// live fills in the status of a container that can start at the time at which it is due: it runs, perhaps ends, and then is
// started again or not. At each start it needs the objects that its variables refer to. It returns when the status changes.
func (m moment) live(status *corev1.ContainerStatus, c corev1.Container, e end, due time.Duration) (change time.Duration) {
	latest, ran := m.runs[c.Name]
	for {
		if ran {
			ended := latest.started + e.run
			if !e.ends || m.elapsed < ended {
				m.running(status, latest)
				if !e.ends {
					return 0
				}
				return ended
			}
			m.ended(status, e, latest, ended)
			if !m.restarted(c, e.exitCode) {
				return 0
			}
			status.LastTerminationState = status.State
			wait := backOff(latest.restarts)
			if due = ended + wait; m.elapsed < due {
				status.State = waiting(crashLoop, fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
					wait, c.Name, m.pod.Name, m.pod.Namespace, m.pod.UID))
				return due
			}
			latest.restarts++
		}
		if problem := m.find.variablesProblem(m.pod, c); problem != "" {
			m.held[c.Name] = true
			status.State = waiting(configError, problem)
			return m.elapsed + lookAgain
		}
		latest.started, ran = m.startOf(c.Name, due), true
		m.runs[c.Name] = latest
		*status = m.blank(c)
	}
}

// backOff returns how long a container waits that ended after some restarts.
func backOff(restarts int32) time.Duration {
	return min(firstBackOff<<min(restarts, 8), lastBackOff)
}

// getReady makes a running container ready if it is time, else says when it is.
func (m moment) getReady(status *corev1.ContainerStatus, e end, started time.Duration) (change time.Duration) {
	ready := started + m.behaviour.readyAfter
	switch {
	case m.behaviour.neverReady:
		return 0
	case m.elapsed < ready:
		return ready
	}
	m.setReady(status, e)
	return 0
}

// headStart moves the reported start of a container that goes on running into the past. So an operator that waits until containers
// have run for some time concludes at once.
const headStart = time.Hour

func (m moment) setReady(status *corev1.ContainerStatus, e end) {
	status.Ready = true
	if running := status.State.Running; running != nil && !e.ends {
		running.StartedAt = metav1.NewTime(running.StartedAt.Add(-headStart))
	}
}

// restarted reports whether a container that ended is started again. An init container of a pod that is always restarted
// is over after a success.
func (m moment) restarted(c corev1.Container, exitCode int32) bool {
	isInit := slices.ContainsFunc(m.pod.Spec.InitContainers, func(i corev1.Container) bool { return i.Name == c.Name })
	switch {
	case isSidecar(c):
		return true
	case m.pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return false
	case m.pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure || isInit:
		return exitCode != 0
	}
	return true
}

func (m moment) blank(c corev1.Container) corev1.ContainerStatus {
	return corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: new(false)}
}

func (m moment) running(status *corev1.ContainerStatus, r run) {
	status.RestartCount = r.restarts
	status.ImageID = "podsim://" + status.Image
	status.ContainerID = fmt.Sprintf("podsim://%s/%s/%d", m.pod.UID, status.Name, r.restarts)
	status.Started = new(true)
	status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: m.at(r.started)}}
}

func (m moment) ended(status *corev1.ContainerStatus, e end, r run, ended time.Duration) {
	m.running(status, r)
	status.Started = new(false)
	reason := "Completed"
	if e.exitCode != 0 {
		reason = cmp.Or(e.reason, "Error")
	}
	status.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: e.exitCode, Reason: reason, ContainerID: status.ContainerID,
		StartedAt: m.at(r.started), FinishedAt: m.at(ended),
	}}
}

func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func imagePull(image string) corev1.ContainerState {
	return waiting("ImagePullBackOff", fmt.Sprintf("Back-off pulling image %q: not found", image))
}
