// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/internal/sentence"
)

// Problem classifies the problem of a pod.
type Problem string

const (
	// Starting: a container is being created.
	Starting Problem = "Starting"
	// NotReady: a container runs, and its probe does not succeed.
	NotReady Problem = "NotReady"
	// ImagePull: the image cannot be pulled.
	ImagePull Problem = "ImagePull"
	// Crash: a container ends by itself, with an error or again and again.
	Crash Problem = "Crash"
	// OutOfMemory: a container was ended, because it uses more memory than its limit.
	OutOfMemory Problem = "OutOfMemory"
	// MissingReference: a Secret, a ConfigMap or a key of one does not exist.
	MissingReference Problem = "MissingReference"
	// Unschedulable: no node takes the pod.
	Unschedulable Problem = "Unschedulable"
	// VolumeUnbound: a claim that the pod uses has no volume.
	VolumeUnbound Problem = "VolumeUnbound"
	// Other is anything else that does not end by itself.
	Other Problem = "Other"
)

// Finding is the problem of a pod.
type Finding struct {
	Problem Problem
	// Pod is the name of the pod.
	Pod string
	// Container is empty if the finding is about the pod as a whole.
	Container string
	// Text has no message of the container runtime, because such may hold secrets.
	Text string
	// Since is when the problem was seen first or, of a container that crashes, last. It is zero
	// if that is not known.
	Since time.Time
	// Restarts is how often the container was restarted.
	Restarts int32
	// Reference is the missing object, if that is the problem.
	Reference *Reference

	severity severity
}

// Reference names a Secret or a ConfigMap in the namespace of the pod.
type Reference struct {
	// Kind is Secret or ConfigMap.
	Kind string
	// Name is the name of the object.
	Name string
	// Key is empty if the object itself does not exist.
	Key string
}

// String is the finding with the name of the pod, such as "pod api-x: ImagePullBackOff".
func (f Finding) String() string { return fmt.Sprintf("pod %s: %s", f.Pod, f.Text) }

// severity orders findings.
type severity int

const (
	fine severity = iota
	starting
	unready
	broken
)

// Worst returns the worst finding; of equally bad ones the finding of the first pod by name, so
// that messages stay the same as long as nothing changes. It returns false if the pods show
// nothing. Pods that are being deleted do not count.
func Worst(pods []corev1.Pod) (Finding, bool) {
	var worst Finding
	for i := range pods {
		pod := &pods[i]
		if !pod.DeletionTimestamp.IsZero() {
			continue
		}
		f := examine(pod)
		if f.severity > worst.severity || f.severity == worst.severity && f.severity > fine && f.Pod < worst.Pod {
			worst = f
		}
	}
	return worst, worst.severity > fine
}

// examine returns the problem of a pod.
func examine(pod *corev1.Pod) Finding {
	worst := Finding{}
	note := func(f Finding) {
		if f.severity > worst.severity {
			worst = f
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		note(Finding{Problem: Other, Text: pod.Status.Reason, severity: broken})
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			// The rest is about preemption, and has no cause.
			why, _, _ := strings.Cut(sentence.OneLine(condition.Message), ". ")
			text := sentence.Shorten(condition.Reason+": "+why, maxText)
			problem := Unschedulable
			if strings.Contains(strings.ToLower(condition.Message), "persistentvolumeclaim") {
				problem = VolumeUnbound
			}
			note(Finding{Problem: problem, Text: text, Since: condition.LastTransitionTime.Time, severity: broken})
		}
	}
	for _, container := range pod.Status.InitContainerStatuses {
		note(examineContainer(pod, container, true))
	}
	for _, container := range pod.Status.ContainerStatuses {
		note(examineContainer(pod, container, false))
	}
	worst.Pod = pod.Name
	if worst.Since.IsZero() {
		worst.Since = pod.CreationTimestamp.Time
	}
	return worst
}

// maxText is how much of the scheduler's explanation, or of the name of an image, is shown.
const maxText = 160

// imageReasons are why a container waits for its image.
var imageReasons = []string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}

// specOf returns a container as the pod asks for it; nil if there is none of the name.
func specOf(pod *corev1.Pod, name string) *corev1.Container {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if container.Name == name {
			return &container
		}
	}
	return nil
}

func examineContainer(pod *corev1.Pod, container corev1.ContainerStatus, init bool) Finding {
	f := Finding{Container: container.Name, Restarts: container.RestartCount}
	found := func(s severity, problem Problem, format string, arguments ...any) Finding {
		f.severity, f.Problem, f.Text = s, problem, fmt.Sprintf(format, arguments...)
		return f
	}
	spec, state := specOf(pod, container.Name), container.State
	switch {
	case state.Waiting != nil && (state.Waiting.Reason == "ContainerCreating" || state.Waiting.Reason == "PodInitializing"):
		return found(starting, Starting, "%s", state.Waiting.Reason)
	case state.Waiting != nil && slices.Contains(imageReasons, state.Waiting.Reason):
		if spec != nil && spec.Image != "" {
			return found(broken, ImagePull, "%s", sentence.Shorten(state.Waiting.Reason+": image "+spec.Image, maxText))
		}
		return found(broken, ImagePull, "%s", state.Waiting.Reason)
	case state.Waiting != nil && state.Waiting.Reason == "CreateContainerConfigError":
		if f.Reference = missing(state.Waiting.Message); f.Reference != nil {
			return found(broken, MissingReference, "%s: %s", state.Waiting.Reason, state.Waiting.Message)
		}
		return found(broken, Other, "%s", state.Waiting.Reason)
	case state.Waiting != nil && state.Waiting.Reason != "":
		if last := container.LastTerminationState.Terminated; last != nil {
			f.Since = last.FinishedAt.Time
			return found(broken, problemOf(last), "%s (%s)", state.Waiting.Reason, ending(spec, last))
		}
		return found(broken, Other, "%s", state.Waiting.Reason)
	case state.Terminated != nil && state.Terminated.ExitCode != 0:
		f.Since = state.Terminated.FinishedAt.Time
		return found(broken, problemOf(state.Terminated), "container %s ended with %s", container.Name, ending(spec, state.Terminated))
	case state.Running != nil && !container.Ready && !init:
		f.Since = state.Running.StartedAt.Time
		return found(unready, NotReady, "container %s is not ready", container.Name)
	}
	return f
}

// outOfMemory is the reason of a container that used more memory than its limit.
const outOfMemory = "OOMKilled"

func problemOf(ended *corev1.ContainerStateTerminated) Problem {
	if ended.Reason == outOfMemory {
		return OutOfMemory
	}
	return Crash
}

// ending describes how a container ended.
func ending(spec *corev1.Container, ended *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", ended.ExitCode)
	if ended.Reason != outOfMemory {
		return text
	}
	text += ", " + outOfMemory
	if spec != nil && !spec.Resources.Limits.Memory().IsZero() {
		text += ": the memory limit is " + spec.Resources.Limits.Memory().String()
	}
	return text
}

// These are the messages of a kubelet about environment variables that refer to missing objects.
// They have names only, so they are shown.
var (
	missingObject = regexp.MustCompile(`^(secret|configmap) "([^"\s]+)" not found$`)
	missingKey    = regexp.MustCompile(`^couldn't find key (\S+) in (Secret|ConfigMap) [^\s/]+/(\S+)$`)
	kinds         = map[string]string{"secret": "Secret", "configmap": "ConfigMap"}
)

// missing returns the missing object that the message names; nil for other messages.
func missing(message string) *Reference {
	if m := missingObject.FindStringSubmatch(message); m != nil {
		return &Reference{Kind: kinds[m[1]], Name: m[2]}
	}
	if m := missingKey.FindStringSubmatch(message); m != nil {
		return &Reference{Kind: m[2], Name: m[3], Key: m[1]}
	}
	return nil
}
