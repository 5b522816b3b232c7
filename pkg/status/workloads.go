// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// corrections improve on what kstatus says about workloads: mostly the message,
// and where pods are replaced only when somebody deletes them, the judgement.
var corrections = map[schema.GroupKind]func(*unstructured.Unstructured, Status) Status{
	{Group: "apps", Kind: "Deployment"}:  correctDeployment,
	{Group: "apps", Kind: "ReplicaSet"}:  correctReplicaSet,
	{Group: "apps", Kind: "StatefulSet"}: correctStatefulSet,
	{Group: "apps", Kind: "DaemonSet"}:   correctDaemonSet,
	{Kind: "Pod"}:                        correctPod,
}

// workload are the numbers of a workload's replicas.
type workload struct {
	wanted, existing, updated, ready, available int64
}

func replicas(obj *unstructured.Unstructured) workload {
	return workload{
		wanted:    count(obj.Object, 1, "spec", "replicas"),
		existing:  count(obj.Object, 0, "status", "replicas"),
		updated:   count(obj.Object, 0, "status", "updatedReplicas"),
		ready:     count(obj.Object, 0, "status", "readyReplicas"),
		available: count(obj.Object, 0, "status", "availableReplicas"),
	}
}

// progress says what is missing, in the order in which it comes.
func (w workload) progress() string {
	// At the first rollout there is nothing to update; what counts is what runs.
	first := w.existing == w.updated
	switch {
	case w.updated < w.wanted && !first:
		return fmt.Sprintf("%d of %d replicas updated, %d ready", w.updated, w.wanted, w.ready)
	case w.ready < w.wanted:
		return fmt.Sprintf("%d of %d replicas ready", w.ready, w.wanted)
	case w.existing > w.wanted:
		return fmt.Sprintf("%d old replicas are still there", w.existing-w.wanted)
	case w.available < w.wanted:
		return fmt.Sprintf("%d of %d replicas available", w.available, w.wanted)
	default:
		return "the rollout is not complete yet"
	}
}

func correctDeployment(obj *unstructured.Unstructured, s Status) Status {
	if s.Readiness == Ready {
		return s
	}
	message := replicas(obj).progress()
	if s.Readiness == Failed {
		message = "the progress deadline is exceeded, " + message
	}
	if paused, _ := field(obj.Object, "spec", "paused").(bool); paused {
		message += ", the rollout is paused"
	}
	s.Message = explain(message, replicaFailure(obj))
	return s
}

func correctReplicaSet(obj *unstructured.Unstructured, s Status) Status {
	if s.Readiness != Ready {
		w := replicas(obj)
		w.updated = w.wanted
		s.Message = explain(w.progress(), replicaFailure(obj))
	}
	return s
}

// replicaFailure returns why pods cannot be created, such as an exceeded quota.
func replicaFailure(obj *unstructured.Unstructured) string {
	if c, _ := findCondition(obj, "ReplicaFailure"); c.status == "True" {
		return explain(c.reason, c.message)
	}
	return ""
}

func correctStatefulSet(obj *unstructured.Unstructured, s Status) Status {
	w := replicas(obj)
	// A StatefulSet says how many pods are available only in newer servers.
	w.available = max(w.available, w.ready)
	if replacedByHand(obj) {
		// Old pods are as intended, but there must be pods.
		w.updated = w.wanted
		s = Status{Readiness: Ready}
		if w.ready < w.wanted || w.existing > w.wanted {
			s.Readiness = NotReady
		}
	}
	if s.Readiness != Ready {
		s.Message = w.progress()
	}
	return s
}

func correctDaemonSet(obj *unstructured.Unstructured, s Status) Status {
	if s.Readiness == Ready {
		return s
	}
	w := workload{
		wanted:    count(obj.Object, -1, "status", "desiredNumberScheduled"),
		existing:  count(obj.Object, 0, "status", "currentNumberScheduled"),
		updated:   count(obj.Object, 0, "status", "updatedNumberScheduled"),
		ready:     count(obj.Object, 0, "status", "numberReady"),
		available: count(obj.Object, 0, "status", "numberAvailable"),
	}
	observed := field(obj.Object, "status", "observedGeneration") != nil
	if w.wanted < 0 || !observed {
		s.Message = "is not observed yet"
		return s
	}
	if replacedByHand(obj) {
		w.updated = w.wanted
		if w.existing >= w.wanted && w.ready >= w.wanted && w.available >= w.wanted {
			return Status{Readiness: Ready}
		}
	}
	w.existing = min(w.existing, w.wanted) // what is beyond belongs to nodes that go away
	s.Message = w.progress()
	return s
}

// replacedByHand tells whether pods are replaced only when somebody deletes them.
func replacedByHand(obj *unstructured.Unstructured) bool {
	return text(obj.Object, "spec", "updateStrategy", "type") == "OnDelete"
}

// correctPod names what the containers wait for.
func correctPod(obj *unstructured.Unstructured, s Status) Status {
	if s.Readiness == Ready {
		return s
	}
	var waiting []string
	for _, list := range []string{"initContainerStatuses", "containerStatuses"} {
		entries, _ := field(obj.Object, "status", list).([]any)
		for _, entry := range entries {
			if reason := text(entry, "state", "waiting", "reason"); reason != "" && reason != "PodInitializing" {
				waiting = append(waiting, "container "+text(entry, "name")+" waits: "+reason+imageText(obj, text(entry, "name"), reason))
			}
		}
	}
	if len(waiting) > 0 {
		s.Message = strings.Join(waiting, ", ")
	}
	return s
}

// imageText names the image that a container of the pod waits for; empty if it is
// something else that it waits for.
func imageText(pod *unstructured.Unstructured, container, reason string) string {
	if !strings.Contains(reason, "Image") {
		return ""
	}
	for _, list := range []string{"initContainers", "containers"} {
		entries, _ := field(pod.Object, "spec", list).([]any)
		for _, entry := range entries {
			if image := text(entry, "image"); image != "" && text(entry, "name") == container {
				return ": image " + image
			}
		}
	}
	return ""
}
