// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/pods"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/status"
)

// State is how a dependent is.
type State string

// States of dependents. Ready, NotReady and Failed are what pkg/status says about the live object.
const (
	StateReady    State = "Ready"
	StateNotReady State = "NotReady"
	StateFailed   State = "Failed"
	// StateUnknown: it is there, and its readiness is unknown.
	StateUnknown State = "Unknown"
	// StatePending: it is recorded and not created yet.
	StatePending State = "Pending"
	// StateCompleted: it did its work and was removed.
	StateCompleted State = "Completed"
	// StateDeleting: it is being deleted.
	StateDeleting State = "Deleting"
	// StateMissing: it was there, and is gone.
	StateMissing State = "Missing"
	// StateReleased: another owner took it over.
	StateReleased State = "Released"
	// StateForbidden: it may not be read.
	StateForbidden State = "Forbidden"
	// StateRemote: it is in another cluster.
	StateRemote State = "Remote"
)

// Stage is when a dependent is applied.
type Stage struct {
	// Order sorts stages.
	Order int `json:"order"`
	// Title is what they are called, such as "wave 0".
	Title string `json:"title"`
}

// Dependent is a dependent object, as the inventory and the server show it.
type Dependent struct {
	// Item is the record in the inventory.
	Item v1alpha1.InventoryItem
	// Object is the live object; nil if it is not there or cannot be read. The values of a Secret are masked.
	Object *unstructured.Unstructured
	// Stage is when it is applied.
	Stage Stage
	// State says how it is, and Message why it is not ready.
	State   State
	Message string
	// Changes are what other clients than the operator set of it.
	Changes []Change
}

// String names the dependent: "Deployment market/corner-web".
func (d Dependent) String() string {
	return d.Item.Kind + " " + strings.TrimPrefix(d.Item.Namespace+"/"+d.Item.Name, "/")
}

// IsReady reports whether nothing is to be waited for.
func (d Dependent) IsReady() bool {
	return d.State == StateReady || d.State == StateCompleted || d.State == StateReleased
}

// farOut is further out than the waves that people give to objects: there the hooks of charts are.
const farOut = 10000

func stageOf(item v1alpha1.InventoryItem) Stage {
	order := int(item.ApplyOrder)
	switch {
	case item.RunOn == "pre-delete":
		return Stage{math.MinInt16 - 1, "before the deletion"}
	case item.RunOn == "post-delete":
		return Stage{math.MaxInt16 + 1, "after the deletion"}
	case order < -farOut:
		return Stage{order, "hooks before"}
	case order > farOut:
		return Stage{order, "hooks after"}
	}
	return Stage{order, fmt.Sprintf("wave %d", order)}
}

// parallel bounds the requests at a time.
const parallel = 8

// Dependents returns the dependents of a component in the order in which they are applied. Objects of one type in one
// namespace are listed by their label in one request; those that the list does not have, and single ones, are read. A
// LostError comes with what is known all the same.
func (r *Reader) Dependents(ctx context.Context, c Component) ([]Dependent, error) {
	inventory, err := r.Inventory(ctx, c)
	if err != nil && !IsLost(err) && c.Mistake == nil {
		return nil, err
	}
	lost := err
	dependents := make([]Dependent, len(inventory.Items))
	groups := map[groupKey][]*Dependent{}
	for i, item := range inventory.Items {
		dependents[i] = Dependent{Item: item, Stage: stageOf(item)}
		key := groupKey{KindOf(item), item.Namespace}
		groups[key] = append(groups[key], &dependents[i])
	}
	running, groupCtx := errgroup.WithContext(ctx)
	running.SetLimit(parallel)
	for key, group := range groups {
		running.Go(func() error { return r.readGroup(groupCtx, c, key, group) })
	}
	if err := running.Wait(); err != nil {
		return nil, err
	}
	findRemote(c, dependents)
	dependents = append(dependents, r.SharedTypes(ctx, c)...)
	slices.SortStableFunc(dependents, func(a, b Dependent) int {
		return cmp.Or(cmp.Compare(a.Stage.Order, b.Stage.Order), cmp.Compare(a.Item.Kind, b.Item.Kind), cmp.Compare(a.Item.Namespace, b.Item.Namespace), cmp.Compare(a.Item.Name, b.Item.Name))
	})
	return dependents, lost
}

// SharedTypes returns the definitions that all components of a reconciler share. No inventory has them. It returns none if definitions
// may not be listed, or are in the cluster of a kubeconfig.
func (r *Reader) SharedTypes(ctx context.Context, c Component) (dependents []Dependent) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	_, remote, _ := unstructured.NestedFieldNoCopy(c.Object.Object, "spec", "kubeConfig")
	if remote || c.Reconciler == "" || r.Client.List(ctx, list, client.HasLabels{c.Reconciler + "/" + vocabulary.LabelShared}) != nil {
		return nil
	}
	for i := range list.Items {
		live := &list.Items[i]
		d := Dependent{Stage: Stage{math.MinInt16 - 2, "shared by all components"}, Item: v1alpha1.InventoryItem{
			Group: live.GroupVersionKind().Group, Version: live.GroupVersionKind().Version, Kind: live.GetKind(), Name: live.GetName(), UID: live.GetUID(),
		}}
		d.assess(c.Reconciler, live, nil)
		dependents = append(dependents, d)
	}
	return dependents
}

// groupKey is a type and a namespace.
type groupKey struct {
	kind      schema.GroupVersionKind
	namespace string
}

// Assess says how a dependent is, by its live object; nil means that it does not exist. The values of a Secret are masked
// in the object itself. That all dependents may be in another cluster is not considered.
func (c Component) Assess(item v1alpha1.InventoryItem, live *unstructured.Unstructured) Dependent {
	d := Dependent{Item: item, Stage: stageOf(item)}
	d.assess(c.Reconciler, live, nil)
	return d
}

// OwnerLabel selects the dependents of a component. It is nil if no operator has written the label yet.
func (c Component) OwnerLabel() client.MatchingLabels {
	if c.Reconciler == "" || c.Status.OwnerID == "" {
		return nil
	}
	return client.MatchingLabels{c.Reconciler + "/" + vocabulary.LabelOwnerID: c.Status.OwnerID}
}

// readGroup reads the objects of one type in one namespace. It runs in a goroutine of its own, where a panic about an
// object would end the program.
func (r *Reader) readGroup(ctx context.Context, c Component, key groupKey, group []*Dependent) (err error) {
	defer guard.Into(&err)
	found := map[string]*unstructured.Unstructured{}
	if label := c.OwnerLabel(); len(group) > 1 && label != nil {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(key.kind.GroupVersion().WithKind(key.kind.Kind + "List"))
		err := r.Client.List(ctx, list, client.InNamespace(key.namespace), label)
		if err != nil && !isAnswer(err) {
			return err
		}
		for i := range list.Items {
			found[list.Items[i].GetName()] = &list.Items[i]
		}
	}
	for _, d := range group {
		object := found[d.Item.Name]
		var err error
		if object == nil {
			object = &unstructured.Unstructured{}
			object.SetGroupVersionKind(key.kind)
			err = r.Client.Get(ctx, keyOf(d.Item), object)
		}
		if err != nil && !isAnswer(err) {
			return err
		}
		if err != nil {
			object = nil
		}
		d.assess(c.Reconciler, object, err)
	}
	return nil
}

// isAnswer reports whether an error is about one object, so that the others can be read.
func isAnswer(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err) || apimeta.IsNoMatchError(err)
}

// assess says how a dependent is.
func (d *Dependent) assess(reconciler string, object *unstructured.Unstructured, err error) {
	completed := d.Item.Phase == vocabulary.PhaseCompleted || d.Item.Phase == vocabulary.PhaseCompleting
	switch {
	case apierrors.IsForbidden(err):
		d.State, d.Message = StateForbidden, "you may not read it"
		return
	case object == nil && completed:
		d.State = StateCompleted
		return
	case object == nil && d.Item.UID == "":
		d.State, d.Message = StatePending, "not created yet"
		return
	case object == nil:
		d.State, d.Message = StateMissing, "it does not exist"
		if apimeta.IsNoMatchError(err) {
			d.Message = "its type is not served"
		}
		return
	}
	readiness := status.Analyze(object, readinessOptions(reconciler, object))
	d.Object = masked(object)
	d.Changes = changesBy(d.Object, reconciler)
	d.Message = messageOf(object, readiness)
	switch {
	case d.Item.Phase == vocabulary.PhaseReleased:
		d.State = StateReleased
	case object.GetDeletionTimestamp() != nil:
		d.State = StateDeleting
		if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
			d.Message = "finalizers " + strings.Join(finalizers, ", ")
		}
	case readiness.Readiness == status.Ready:
		d.State = StateReady
	case readiness.Readiness == status.Failed:
		d.State = StateFailed
	case readiness.Readiness == status.NotReady:
		d.State = StateNotReady
	default:
		d.State = StateUnknown
	}
}

// readinessOptions returns what the annotations of an object say about its readiness.
func readinessOptions(reconciler string, object *unstructured.Unstructured) status.Options {
	var options status.Options
	annotations := object.GetAnnotations()
	if expression := annotations[reconciler+"/"+v1alpha1.AnnotationReadyWhen]; expression != "" {
		if program, err := status.CompileReadyWhen(expression); err == nil {
			options.ReadyWhen = program
		}
	}
	return options
}

// masked returns an object without the values of a Secret and without the copy that kubectl apply keeps.
func masked(object *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := object.GetAnnotations()
	if _, ok := annotations[corev1.LastAppliedConfigAnnotation]; ok {
		delete(annotations, corev1.LastAppliedConfigAnnotation)
		object.SetAnnotations(annotations)
	}
	if object.GroupVersionKind() != corev1.SchemeGroupVersion.WithKind("Secret") {
		return object
	}
	for _, field := range []string{"data", "stringData"} {
		values, _, _ := unstructured.NestedMap(object.Object, field)
		for key := range values {
			values[key] = hidden
		}
		if len(values) > 0 {
			object.Object[field] = values
		}
	}
	return object
}

// hidden stands for a value that must not be shown.
const hidden = "***"

// findRemote marks dependents that seem to be missing because they are in the cluster of a kubeconfig in the spec.
func findRemote(c Component, dependents []Dependent) {
	_, remote, _ := unstructured.NestedFieldNoCopy(c.Object.Object, "spec", "kubeConfig")
	missing := slices.ContainsFunc(dependents, func(d Dependent) bool { return d.State == StateMissing })
	if !missing || !remote {
		return
	}
	for i := range dependents {
		dependents[i].Object, dependents[i].Changes = nil, nil
		dependents[i].State, dependents[i].Message = StateRemote, "it is in the cluster that the kubeconfig of the component leads to"
	}
}

// Pods returns the pods of the workloads among the dependents, by the uid of the workload. Namespaces in which pods may not be listed are in the error; the pods of others come with it.
func (r *Reader) Pods(ctx context.Context, dependents []Dependent) (map[types.UID][]*unstructured.Unstructured, error) {
	workloads, namespaces := map[types.UID]types.UID{}, map[string]bool{} // a workload or its child, to the workload
	viaReplicaSet := map[string]bool{}
	for _, d := range dependents {
		if d.Object == nil || !IsWorkload(d.Item) {
			continue
		}
		workloads[d.Object.GetUID()] = d.Object.GetUID()
		namespaces[d.Item.Namespace] = true
		switch d.Item.Kind {
		case "Deployment", "CronJob":
			viaReplicaSet[d.Item.Namespace+"/"+d.Item.Kind] = true
		}
	}
	var refused []error
	for _, of := range slices.Sorted(maps.Keys(viaReplicaSet)) { // sorted, so that the error is the same each time
		namespace, kind, _ := strings.Cut(of, "/")
		child := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "ReplicaSet"}
		if kind == "CronJob" {
			child = schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}
		}
		objects, err := r.metadata(ctx, child, namespace)
		if err != nil {
			refused = append(refused, err)
		}
		for i := range objects {
			if owner := metav1.GetControllerOf(&objects[i]); owner != nil && workloads[owner.UID] != "" {
				workloads[objects[i].UID] = workloads[owner.UID]
			}
		}
	}
	pods := map[types.UID][]*unstructured.Unstructured{}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			refused = append(refused, fmt.Errorf("list the pods in namespace %s: %w", namespace, err))
			continue
		}
		for i := range list.Items {
			pod := &list.Items[i]
			if owner := metav1.GetControllerOf(pod); owner != nil && workloads[owner.UID] != "" {
				of := workloads[owner.UID]
				pods[of] = append(pods[of], pod)
			}
		}
	}
	return pods, errors.Join(refused...)
}

// PodState returns the phase of a pod, and why it is not ready.
func PodState(pod *unstructured.Unstructured) (state, message string) {
	state, _, _ = unstructured.NestedString(pod.Object, "status", "phase")
	if s := status.Analyze(pod, status.Options{}); s.Readiness != status.Ready {
		message = messageOf(pod, s)
	}
	if pod.GetDeletionTimestamp() != nil {
		state = "Terminating"
	}
	return cmp.Or(state, "Unknown"), message
}

// messageOf says how an object is, and of a pod that is not ready what is wrong with it, as the condition Ready of the component does.
func messageOf(object *unstructured.Unstructured, s status.Status) string {
	pod := corev1.Pod{}
	isPod := object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Pod")
	if !isPod || s.Readiness == status.Ready || runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod) != nil {
		return s.Message
	}
	worst, _ := pods.Worst([]corev1.Pod{pod})
	return cmp.Or(worst.Text, s.Message)
}

// Replicas says how many pods of a workload are ready, such as "2/3". It is empty for other objects.
func Replicas(object *unstructured.Unstructured) string {
	ready, hasReady, _ := unstructured.NestedInt64(object.Object, "status", "readyReplicas") // which is left out if it is 0
	_, isObserved, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	desired, hasDesired, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	if !hasDesired || !hasReady && !isObserved {
		return ""
	}
	return fmt.Sprintf("%d/%d", ready, desired)
}

// metadata lists the metadata of the objects of a type in a namespace.
func (r *Reader) metadata(ctx context.Context, kind schema.GroupVersionKind, namespace string) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("list objects of kind %s in namespace %s: %w", kind.Kind, namespace, err)
	}
	return list.Items, nil
}

// IsWorkload reports whether an object makes pods.
func IsWorkload(item v1alpha1.InventoryItem) bool {
	switch item.Group + "/" + item.Kind {
	case "apps/Deployment", "apps/StatefulSet", "apps/DaemonSet", "apps/ReplicaSet", "batch/Job", "batch/CronJob", "/ReplicationController":
		return true
	}
	return false
}
