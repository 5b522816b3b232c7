// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/pods"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
)

const (
	// reasonPatience is how long a workload may be unready before we ask why:
	// most become ready sooner.
	reasonPatience = 3 * time.Second
	// reasonInterval is how often we ask.
	reasonInterval = 10 * time.Second
)

// FailureReasons holds, by waitID, the reasons why workloads of a component do not become ready:
// the reason is usually not in the workload, but in one of its pods, or in the events of a
// controller that cannot create pods.
type FailureReasons map[string]failureReason

// failureReason holds the known facts about one unready workload.
type failureReason struct {
	asked time.Time
	text  string
}

// Explain returns the reasons for the waits that a message names, by waitID. It asks the cluster
// about workloads that are due, and forgets workloads that are not waited for any more.
func (c *FailureReasons) Explain(ctx context.Context, now time.Time, waits []report.Wait, reader client.Reader) map[string]string {
	known, texts := FailureReasons{}, map[string]string{}
	for i, wait := range byImportance(waits) {
		if !isWorkload(wait) {
			continue
		}
		id := waitID(wait)
		entry, ok := (*c)[id]
		if !ok { // it is due after reasonPatience
			entry.asked = now.Add(reasonPatience - reasonInterval)
		}
		if i < MaxNamed && now.Sub(entry.asked) >= reasonInterval {
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
func askPods(ctx context.Context, wait report.Wait, reader client.Reader) string {
	text, err := podsReason(ctx, wait, reader)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("cannot find out why a workload is not ready", "workload", wait.Key.String(), "error", err.Error())
		return ""
	}
	return text
}

// waitID identifies the awaited object; kinds of different groups may have one name.
func waitID(wait report.Wait) string { return wait.Key.Group + "/" + wait.Key.String() }

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
func isWorkload(wait report.Wait) bool {
	_, ok := workloads[wait.Key.GroupKind()]
	return ok && (wait.Reason == report.WaitReady || wait.Reason == report.WaitFailed)
}

// podsReason returns why the pods of a workload are not ready, such as "pod api-x:
// ImagePullBackOff"; empty if they show nothing. It reads the workload, because not every selector
// is in the manifest, and lists its pods.
func podsReason(ctx context.Context, wait report.Wait, reader client.Reader) (string, error) {
	gk := wait.Key.GroupKind()
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(gk.WithVersion(workloads[gk]))
	if err := reader.Get(ctx, client.ObjectKey{Namespace: wait.Key.Namespace, Name: wait.Key.Name}, workload); err != nil {
		return "", err
	}
	known, _ := readWorkload(workload)
	selector, err := metav1.LabelSelectorAsSelector(known.Spec.Selector)
	if err != nil || known.Spec.Selector == nil || selector.Empty() {
		return "", fmt.Errorf("%s has no valid selector", wait.Key)
	}
	list := &corev1.PodList{}
	err = reader.List(ctx, list, client.InNamespace(wait.Key.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods))
	if err != nil {
		return "", err
	}
	if worst, found := pods.Worst(list.Items); found {
		return worst.String(), nil
	}
	if gk.Kind == "Deployment" || gk.Kind == "ReplicaSet" {
		return "", nil // their condition ReplicaFailure reports it
	}
	return refusal(ctx, workload, list.Items, reader)
}

// refusal returns why the controller of a workload cannot create pods, as its latest event says; empty if it has
// created a pod since. The name of the pod is left out, because each attempt has another.
func refusal(ctx context.Context, workload client.Object, created []corev1.Pod, reader client.Reader) (string, error) {
	list := &corev1.EventList{}
	err := reader.List(ctx, list, client.InNamespace(workload.GetNamespace()), client.Limit(maxPods),
		client.MatchingFields{"involvedObject.uid": string(workload.GetUID()), "reason": "FailedCreate"})
	var last time.Time
	message := ""
	for _, event := range list.Items {
		if at := cmp.Or(event.LastTimestamp.Time, event.CreationTimestamp.Time); !at.Before(last) {
			last, message = at, sentence.OneLine(event.Message)
		}
	}
	if message == "" || slices.ContainsFunc(created, func(pod corev1.Pod) bool { return pod.CreationTimestamp.After(last) }) {
		return "", err
	}
	if _, why, found := strings.Cut(message, " is forbidden: "); found {
		message = "forbidden: " + why
	}
	return "no pod is created: " + message, nil
}
