// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

const (
	// reasonPatience is how long a workload may be unready before we ask why:
	// most become ready sooner.
	reasonPatience = 3 * time.Second
	// reasonInterval is how often we ask.
	reasonInterval = 10 * time.Second
)

// FailureReasons says, by waitID, why workloads of a component do not become ready: the reason is
// usually not in the workload, but in one of its pods.
type FailureReasons map[string]failureReason

// failureReason is what is known about one unready workload.
type failureReason struct {
	since time.Time // it is unready, as far as we saw
	asked time.Time
	text  string
}

// Explain returns the reasons for the waits that a message names, by waitID. It asks the
// cluster about those that are due, and forgets what is not waited for any more.
func (c *FailureReasons) Explain(ctx context.Context, now time.Time, waits []reconciler.Wait, reader client.Reader) map[string]string {
	known, texts := FailureReasons{}, map[string]string{}
	for i, wait := range byImportance(waits) {
		if !isWorkload(wait) {
			continue
		}
		id := waitID(wait)
		entry, ok := (*c)[id]
		if !ok {
			entry.since = now
		}
		if i < MaxNamed && now.Sub(entry.since) >= reasonPatience && now.Sub(entry.asked) >= reasonInterval {
			entry.asked, entry.text = now, askPods(ctx, wait, reader)
		}
		known[id] = entry
		texts[id] = entry.text
	}
	if *c = known; len(known) == 0 {
		*c = nil
	}
	return texts
}

// askPods never fails: a message without a reason is better than none.
func askPods(ctx context.Context, wait reconciler.Wait, reader client.Reader) string {
	if reader == nil {
		return ""
	}
	text, err := podsReason(ctx, wait, reader)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("cannot find out why a workload is not ready", "workload", wait.Key.String(), "error", err.Error())
		return ""
	}
	return text
}

// waitID identifies what is waited for; kinds of different groups may have one name.
func waitID(wait reconciler.Wait) string { return wait.Key.Group + "/" + wait.Key.String() }

// maxPods bounds how many pods of a workload are looked at.
const maxPods = 500

// workloads are the kinds that have pods found by spec.selector, and a version
// that every server serves.
var workloads = map[schema.GroupKind]string{
	{Group: "apps", Kind: "Deployment"}:  "v1",
	{Group: "apps", Kind: "StatefulSet"}: "v1",
	{Group: "apps", Kind: "DaemonSet"}:   "v1",
	{Group: "apps", Kind: "ReplicaSet"}:  "v1",
	{Group: "batch", Kind: "Job"}:        "v1",
}

// isWorkload reports whether the wait is about readiness that pods can explain.
func isWorkload(wait reconciler.Wait) bool {
	_, ok := workloads[wait.Key.GroupKind()]
	return ok && (wait.Reason == reconciler.WaitReady || wait.Reason == reconciler.WaitFailed)
}

// podsReason returns what keeps the pods of a workload from being ready, such as
// "pod api-x: ImagePullBackOff"; empty if they show nothing. It reads the
// workload, because not every selector is in the manifest, and lists its pods.
func podsReason(ctx context.Context, wait reconciler.Wait, reader client.Reader) (string, error) {
	gk := wait.Key.GroupKind()
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(gk.WithVersion(workloads[gk]))
	if err := reader.Get(ctx, client.ObjectKey{Namespace: wait.Key.Namespace, Name: wait.Key.Name}, workload); err != nil {
		return "", err
	}
	content, _, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil || len(content) == 0 {
		return "", fmt.Errorf("%s has no selector", wait.Key)
	}
	labelSelector := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, labelSelector); err != nil {
		return "", err
	}
	selector, err := metav1.LabelSelectorAsSelector(labelSelector)
	if err != nil {
		return "", err
	}
	pods := &corev1.PodList{}
	err = reader.List(ctx, pods, client.InNamespace(wait.Key.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods))
	if err != nil {
		return "", err
	}
	return worstReason(pods.Items), nil
}

// severity orders reasons.
type severity int

const (
	fine severity = iota
	starting
	unready
	broken
)

// worstReason picks the worst pod; of equally bad ones the first by name, so that
// the message stays the same as long as nothing changes.
func worstReason(pods []corev1.Pod) string {
	worst, name, text := fine, "", ""
	for i := range pods {
		pod := &pods[i]
		if !pod.DeletionTimestamp.IsZero() {
			continue
		}
		s, t := podReason(pod)
		if s > worst || s == worst && s > fine && pod.Name < name {
			worst, name, text = s, pod.Name, t
		}
	}
	if worst == fine {
		return ""
	}
	return fmt.Sprintf("pod %s: %s", name, text)
}

// podReason returns what is wrong with a pod. Messages of the container runtime are
// left out, because they may hold what is secret.
func podReason(pod *corev1.Pod) (severity, string) {
	worst, text := fine, ""
	note := func(s severity, t string) {
		if s > worst {
			worst, text = s, t
		}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		note(broken, pod.Status.Reason)
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			note(broken, Shorten(condition.Reason+": "+OneLine(condition.Message), maxPodMessage))
		}
	}
	for _, container := range pod.Status.InitContainerStatuses {
		note(containerReason(pod, container, true))
	}
	for _, container := range pod.Status.ContainerStatuses {
		note(containerReason(pod, container, false))
	}
	return worst, text
}

// maxPodMessage is how much of the scheduler's explanation is shown.
const maxPodMessage = 160

// imageReasons are why a container waits for its image.
var imageReasons = []string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}

// imageOf returns the image of a container as the pod asks for it.
func imageOf(pod *corev1.Pod, name string) string {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if container.Name == name {
			return container.Image
		}
	}
	return ""
}

func containerReason(pod *corev1.Pod, container corev1.ContainerStatus, init bool) (severity, string) {
	state := container.State
	switch {
	case state.Waiting != nil && (state.Waiting.Reason == "ContainerCreating" || state.Waiting.Reason == "PodInitializing"):
		return starting, state.Waiting.Reason
	case state.Waiting != nil && slices.Contains(imageReasons, state.Waiting.Reason) && imageOf(pod, container.Name) != "":
		return broken, Shorten(fmt.Sprintf("%s: image %s", state.Waiting.Reason, imageOf(pod, container.Name)), maxPodMessage)
	case state.Waiting != nil && state.Waiting.Reason != "":
		if last := container.LastTerminationState.Terminated; last != nil {
			return broken, fmt.Sprintf("%s (exit code %d)", state.Waiting.Reason, last.ExitCode)
		}
		return broken, state.Waiting.Reason
	case state.Terminated != nil && state.Terminated.ExitCode != 0:
		return broken, fmt.Sprintf("container %s ended with exit code %d", container.Name, state.Terminated.ExitCode)
	case state.Running != nil && !container.Ready && !init:
		return unready, fmt.Sprintf("container %s is not ready", container.Name)
	}
	return fine, ""
}
