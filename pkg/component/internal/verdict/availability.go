// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/pods"
	"github.com/corbel-run/corbel/internal/report"
)

// Unavailable says which of the workloads have containers without a readiness and a startup probe
// that have not run for long enough: minReady, unless the workload sets the time. Waiting is empty
// if there are none. Unread are notes about pods that may not be listed.
func Unavailable(ctx context.Context, workloads []*unstructured.Unstructured, minReady time.Duration, now time.Time, reader client.Reader) (f Facts, unread []report.Note, err error) {
	var waits []report.Wait
	crashes := false
	for _, manifest := range workloads {
		w, containers := readWorkload(manifest)
		atLeast := minReady
		if own, _, _ := unstructured.NestedFieldNoCopy(manifest.Object, "spec", "minReadySeconds"); own != nil {
			atLeast = time.Duration(w.Spec.MinReadySeconds) * time.Second
		}
		selector, err := metav1.LabelSelectorAsSelector(w.Spec.Selector)
		if err != nil || atLeast <= 0 || len(containers) == 0 {
			continue
		}
		key := report.Key{Group: appsv1.GroupName, Kind: manifest.GetKind(), Namespace: manifest.GetNamespace(), Name: manifest.GetName()}
		list := &corev1.PodList{}
		err = reader.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabelsSelector{Selector: selector}, client.Limit(maxPods))
		if apierrors.IsForbidden(err) {
			unread = append(unread, report.Note{Key: key, Message: "its containers without a readiness probe may crash, because its pods may not be listed; grant list on pods"})
			continue
		}
		if err != nil {
			return f, nil, fmt.Errorf("list the pods of %s: %w", key, err)
		}
		own := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !belongsTo(&pod, key) })
		if worst, until := pods.Unavailable(own, containers, atLeast, now); !until.IsZero() {
			crashes = crashes || worst.Problem != pods.Starting
			f.Settling, f.Fallback = max(f.Settling, atLeast), max(f.Fallback, until.Sub(now))
			text := fmt.Sprintf("containers without a readiness probe have to run for %s; %s", atLeast, worst)
			waits = append(waits, report.Wait{Key: key, Reason: report.WaitReady, Message: text})
		}
	}
	if crashes {
		f.Settling = 0
	}
	f.Waiting = WaitingMessage(waits, nil)
	return f, unread, nil
}

// readWorkload returns a workload, as far as all kinds have the fields of a Deployment, and the containers that run as long as their pod
// and have no readiness and no startup probe. There are none if it has no replicas.
func readWorkload(manifest *unstructured.Unstructured) (w appsv1.Deployment, containers []string) {
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(manifest.Object, &w)
	if err != nil || w.Spec.Selector == nil || w.Spec.Replicas != nil && *w.Spec.Replicas == 0 {
		return w, nil
	}
	pod := w.Spec.Template.Spec
	for i, c := range slices.Concat(pod.Containers, pod.InitContainers) {
		isSidecar := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		if (i < len(pod.Containers) || isSidecar) && c.ReadinessProbe == nil && c.StartupProbe == nil {
			containers = append(containers, c.Name)
		}
	}
	return w, containers
}

// belongsTo reports whether the controller of a pod is the workload or, of a Deployment, its ReplicaSet: pods of a Job, for example, may
// have the same labels.
func belongsTo(pod *corev1.Pod, workload report.Key) bool {
	kind, name := workload.Kind, workload.Name
	if kind == "Deployment" {
		kind, name = "ReplicaSet", name+"-"+pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == kind && owner.Name == name
}
