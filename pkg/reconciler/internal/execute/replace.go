// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// replace sends the manifest as a PUT. Finalizers and ownerReferences that others have
// set stay.
// managedFields are not sent: the server takes over what it has.
func (e *Executor) replace(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	object, metadata := body(step.Desired.Manifest)
	carriers, err := e.carriersOf(ctx, resource, object.Object)
	if err != nil {
		return nil, err
	}
	ignored, err := e.leftFields(ctx, resource, step)
	if err != nil {
		return nil, err
	}
	if len(carriers) > 0 || len(ignored) > 0 || step.Referenced {
		live, err := e.readFirst(ctx, resource, step)
		if err != nil {
			return nil, err
		}
		object = object.DeepCopy()
		metadata = object.Object["metadata"].(map[string]any)
		for _, carry := range carriers {
			carry(object.Object, live.Object)
		}
		for _, pointer := range ignored {
			keepLive(object.Object, live.Object, pointer)
		}
		if references := e.references(object, live); len(references) > 0 {
			object.SetOwnerReferences(references)
		}
	}
	precondition(metadata, step)
	if finalizers := union(step.Finalizers, object.GetFinalizers()); len(finalizers) > 0 {
		object.SetFinalizers(finalizers)
	}
	return e.objects.Update(ctx, resource, object, e.options.FieldOwner)
}

// references are those of the manifest, and those that others have set on the live
// object. If the manifest names a controller, it is the only one.
func (e *Executor) references(object, live *unstructured.Unstructured) []metav1.OwnerReference {
	references := object.GetOwnerReferences()
	controlled := metav1.GetControllerOfNoCopy(object) != nil
	for _, other := range live.GetOwnerReferences() {
		known := slices.ContainsFunc(references, func(r metav1.OwnerReference) bool { return r.UID == other.UID })
		second := controlled && other.Controller != nil && *other.Controller
		path := []string{"f:metadata", "f:ownerReferences", `k:{"uid":"` + string(other.UID) + `"}`}
		if !known && !second && !observe.Owns(live, e.options.FieldOwner, path...) {
			references = append(references, other)
		}
	}
	return references
}

// readFirst reads the object that is to be written, which must be as the plan saw it.
func (e *Executor) readFirst(ctx context.Context, resource cluster.Resource, step plan.Step) (*unstructured.Unstructured, error) {
	live, err := e.objects.Get(ctx, resource, step.Key.Namespace, step.Key.Name)
	if err != nil {
		return nil, fmt.Errorf("read it before the write: %w", err)
	}
	if live.GetUID() != step.UID || live.GetResourceVersion() != step.ResourceVersion {
		return nil, errChanged
	}
	return live, nil
}

func union(live, wanted []string) []string {
	all := slices.Clone(live)
	for _, finalizer := range wanted {
		if !slices.Contains(all, finalizer) {
			all = append(all, finalizer)
		}
	}
	return all
}
