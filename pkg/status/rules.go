// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	apiregistrationhelper "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
)

// rules replace the rules of kstatus, which regards a Job as done as soon as it runs and an
// APIService as soon as it exists.
var rules = map[schema.GroupKind]func(*unstructured.Unstructured) Status{
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: analyzeDefinition,
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             analyzeAPIService,
	{Group: "batch", Kind: "Job"}:                                     analyzeJob,
	{Kind: "PersistentVolumeClaim"}:                                   analyzeVolumeClaim,
}

func analyzeDefinition(obj *unstructured.Unstructured) Status {
	names, _ := findCondition(obj, "NamesAccepted")
	if names.status == "False" {
		return Status{Readiness: Failed, Message: explain(names.reason, names.message)}
	}
	established, _ := findCondition(obj, "Established")
	// While the definition is being installed, Established is False for a moment.
	if established.status == "False" && established.reason != "Installing" {
		return Status{Readiness: Failed, Message: explain(established.reason, established.message)}
	}
	if names.status == "True" && established.status == "True" {
		return Status{Readiness: Ready}
	}
	return Status{Message: "is not established yet"}
}

func analyzeAPIService(obj *unstructured.Unstructured) Status {
	service := &apiregistrationv1.APIService{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, service); err != nil {
		return Status{Message: "the status cannot be understood: " + err.Error()}
	}
	switch available := apiregistrationhelper.GetAPIServiceConditionByType(service, apiregistrationv1.Available); {
	case available == nil:
		return Status{Message: "is not available yet"}
	case available.Status == apiregistrationv1.ConditionTrue:
		return Status{Readiness: Ready}
	default:
		return Status{Message: explain("is not available", explain(available.Reason, available.Message))}
	}
}

func analyzeJob(obj *unstructured.Unstructured) Status {
	if complete, _ := findCondition(obj, "Complete"); complete.status == "True" {
		return Status{Readiness: Ready}
	}
	if failed, _ := findCondition(obj, "Failed"); failed.status == "True" {
		return Status{Readiness: Failed, Message: explain(failed.reason, failed.message)}
	}
	// A suspended Job did not do its work. Queues suspend Jobs on purpose and resume them later,
	// so the Job is waited for.
	if suspended, _ := field(obj.Object, "spec", "suspend").(bool); suspended {
		return Status{Message: "is suspended"}
	}
	if text(obj.Object, "status", "startTime") == "" {
		return Status{Message: "is not started yet"}
	}
	completions := count(obj.Object, 0, "spec", "completions")
	if completions == 0 {
		return Status{Message: "is running"}
	}
	return Status{Message: fmt.Sprintf("%d of %d completions", count(obj.Object, 0, "status", "succeeded"), completions)}
}

func analyzeVolumeClaim(obj *unstructured.Unstructured) Status {
	switch phase := text(obj.Object, "status", "phase"); phase {
	case "Bound":
		return Status{Readiness: Ready}
	case "Lost":
		return Status{Readiness: Failed, Message: "has lost its volume"}
	default:
		return Status{Message: "is not bound to a volume (with the binding mode WaitForFirstConsumer it waits for a pod that uses it)"}
	}
}

// corrections improve the results of kstatus for workloads: mostly the message, and where pods are
// replaced only when a user deletes them, the readiness.
var corrections = map[schema.GroupKind]func(*unstructured.Unstructured, Status) Status{
	{Group: "apps", Kind: "Deployment"}:  correctDeployment,
	{Group: "apps", Kind: "ReplicaSet"}:  correctReplicaSet,
	{Group: "apps", Kind: "StatefulSet"}: correctStatefulSet,
	{Group: "apps", Kind: "DaemonSet"}:   correctDaemonSet,
	{Kind: "Pod"}:                        correctPod,
}

// workload are the numbers of a workload's replicas.
type workload struct {
	desired, existing, updated, ready, available int64
}

func replicas(obj *unstructured.Unstructured) workload {
	return workload{
		desired:   count(obj.Object, 1, "spec", "replicas"),
		existing:  count(obj.Object, 0, "status", "replicas"),
		updated:   count(obj.Object, 0, "status", "updatedReplicas"),
		ready:     count(obj.Object, 0, "status", "readyReplicas"),
		available: count(obj.Object, 0, "status", "availableReplicas"),
	}
}

// progress describes the next missing step.
func (w workload) progress() string {
	// At the first rollout there is nothing to update; only running pods count.
	first := w.existing == w.updated
	switch {
	case w.updated < w.desired && !first:
		return fmt.Sprintf("%d of %d replicas updated, %d ready", w.updated, w.desired, w.ready)
	case w.ready < w.desired:
		return fmt.Sprintf("%d of %d replicas ready", w.ready, w.desired)
	case w.existing > w.desired:
		return fmt.Sprintf("%d old replicas are still there", w.existing-w.desired)
	case w.available < w.desired:
		return fmt.Sprintf("%d of %d replicas available", w.available, w.desired)
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
		w.updated = w.desired
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
	// A StatefulSet counts the available pods only in newer servers.
	w.available = max(w.available, w.ready)
	if replacedByHand(obj) {
		// Old pods are as intended, but there must be pods.
		w.updated = w.desired
		s = Status{Readiness: Ready}
		if w.ready < w.desired || w.existing > w.desired {
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
		desired:   count(obj.Object, -1, "status", "desiredNumberScheduled"),
		existing:  count(obj.Object, 0, "status", "currentNumberScheduled"),
		updated:   count(obj.Object, 0, "status", "updatedNumberScheduled"),
		ready:     count(obj.Object, 0, "status", "numberReady"),
		available: count(obj.Object, 0, "status", "numberAvailable"),
	}
	observed := field(obj.Object, "status", "observedGeneration") != nil
	if w.desired < 0 || !observed {
		s.Message = "is not observed yet"
		return s
	}
	if replacedByHand(obj) {
		w.updated = w.desired
		if w.existing >= w.desired && w.ready >= w.desired && w.available >= w.desired {
			return Status{Readiness: Ready}
		}
	}
	w.existing = min(w.existing, w.desired) // the rest belongs to nodes that go away
	s.Message = w.progress()
	return s
}

// replacedByHand reports whether pods are replaced only when a user deletes them.
func replacedByHand(obj *unstructured.Unstructured) bool {
	return text(obj.Object, "spec", "updateStrategy", "type") == "OnDelete"
}

// correctPod names the reason why containers wait.
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
