// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Unavailable returns why the named containers of pods do not count as available, and the earliest time at which all may; it is zero if
// they do. Kubernetes takes a container without a probe for ready as soon as it runs, also between two crashes, so each has to run for
// some time. Pods that have ended or are being deleted, and containers before their first start, do not count.
func Unavailable(pods []corev1.Pod, containers []string, minReady time.Duration, now time.Time) (worst Finding, until time.Time) {
	for i := range pods {
		pod := &pods[i]
		if !pod.DeletionTimestamp.IsZero() || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			f, since := examineContainer(pod, c, false), now // a container that does not run is not available before one that starts now
			last := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
			switch {
			case c.State.Running != nil:
				f.severity, f.Problem, f.Text = starting, Starting, fmt.Sprintf("container %s was started less than %s ago", c.Name, minReady)
				if c.RestartCount > 0 {
					f.severity, f.Problem, f.Text = broken, Crash, fmt.Sprintf("container %s was restarted less than %s ago", c.Name, minReady)
				}
				if c.RestartCount > 0 && last != nil {
					f.Text += ", after it ended with " + ending(specOf(pod, c.Name), last)
				}
				if at := c.State.Running.StartedAt.Time; at.Before(now) { // else the clock of the node is ahead
					since = at
				}
			case last == nil && (c.State.Waiting == nil || c.State.Waiting.Reason != "CrashLoopBackOff"):
				continue
			case f.severity == fine:
				f.severity, f.Problem, f.Text = broken, Crash, fmt.Sprintf("container %s ended with exit code 0", c.Name)
			}
			available := since.Add(minReady)
			if !now.Before(available) || !slices.Contains(containers, c.Name) {
				continue
			}
			if available.After(until) {
				until = available
			}
			if f.Pod = pod.Name; f.severity > worst.severity || f.severity == worst.severity && f.Pod < worst.Pod {
				worst = f
			}
		}
	}
	return worst, until
}
