// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// reasonInventoryRebuilt means that a Secret of the inventory or the status was lost, and the operator found the
// objects again by label and annotation.
//
// Event type: Warning
// What to do: find the client that deletes or changes the Secrets or the status. An object without label and
// annotation is no dependent any more.
const reasonInventoryRebuilt = "InventoryRebuilt"

// LostError means that a part of an inventory is lost and cannot be rebuilt yet.
type LostError struct{ error }

func (e *LostError) Unwrap() error { return e.error }

// rebuild finds the objects of lost parts of the inventory by their labels and annotations. Until that has succeeded, nothing is
// planned: the missing objects would look like objects that were never recorded. In deletion, where nothing is added to an
// inventory, the result is not made durable, unless all was lost: the next process does it again.
func (r *Record) rebuild(ctx context.Context, engine targets.Engine, deletePolicy v1alpha1.DeletePolicy) error {
	k, obj := r.keeper, r.obj
	loss, whole, deleting := r.snapshot.Losses()[0], obj.GetStatus().Inventory.IsLost(), !obj.GetDeletionTimestamp().IsZero()
	request := reconciler.RecoverRequest{
		Owner: k.Self.Owner(obj), Inventory: r.Inventory(), Types: r.snapshot.Types(), Namespaces: r.snapshot.Namespaces(),
		// No other policy is part of an inventory; and a deletion ignores mistakes in them.
		Policies: reconciler.Policies{Delete: deletePolicy, AdoptOperator: k.Self.FormerName(obj)},
	}
	var found []v1alpha1.InventoryItem
	var unlisted []string
	var err error
	if whole {
		err = k.widen(ctx, obj, &request)
	}
	if err == nil {
		found, unlisted, err = engine.Recover(ctx, request)
	}
	if err != nil {
		return &LostError{fmt.Errorf("a part of the inventory is lost (%s) and cannot be rebuilt yet: %w", loss, err)}
	}
	count := r.snapshot.Restore(found)
	note := fmt.Sprintf("a part of the inventory was lost (%s); %s were found again by their ownership label and annotation", loss, verdict.Count(count, "object"))
	if len(unlisted) > 0 {
		note += "; types that may not be listed were left out: " + strings.Join(unlisted[:min(len(unlisted), verdict.MaxNamed)], ", ")
	}
	if !whole || count+len(unlisted) > 0 { // otherwise the claim was durable and nothing else
		k.Telemetry.Warn(obj, reasonInventoryRebuilt, "Read", note)
	}
	if deleting && !whole {
		return nil
	}
	err = r.Save(ctx, r.Inventory())
	if deleting && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // no Secret can be made; the next reconcile looks for the objects again
	}
	return err
}

// NoteLost notes that the record of a component was lost, and reports it: the component has the finalizer of this or the former operator,
// and its status is empty, or says that something was applied and has no inventory. A component that this process has just claimed has
// no status yet, and earlier versions wrote no format for an empty inventory.
func (k *Keeper) NoteLost(obj identity.Component, claiming bool) bool {
	status := obj.GetStatus()
	known := status.Inventory.Format > 1 || status.Inventory.Chunks != nil || !status.Inventory.IsEmpty()
	applied := status.AppliedGeneration != 0 || status.LastAppliedAt != nil
	former := k.Self.FormerName(obj)
	claimed := slices.ContainsFunc(obj.GetFinalizers(), func(finalizer string) bool {
		return finalizer == k.Self.Finalizer || finalizer == former
	})
	if known || claiming || !claimed || status.State != "" && !applied {
		return false
	}
	status.Inventory.Lose()
	return true
}

// NoteRendered adds the types and namespaces of the rendered objects to a record that was lost.
func (k *Keeper) NoteRendered(obj identity.Component, namespace string, rendered []client.Object) error {
	inventory := &obj.GetStatus().Inventory
	if !inventory.IsLost() {
		return nil
	}
	var sought reconciler.RecoverRequest
	err := k.seek(&sought, namespace, rendered...)
	inventory.Chunks.Types, inventory.Chunks.Namespaces = sought.Types, sought.Namespaces
	return err
}

// seek adds to a request the types and namespaces of objects that are deployed in a namespace.
func (k *Keeper) seek(request *reconciler.RecoverRequest, namespace string, objects ...client.Object) error {
	for _, object := range objects {
		gvk, err := k.Local.GroupVersionKindFor(object)
		if err != nil {
			return err
		}
		request.Types = append(request.Types, v1alpha1.InventoryType{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
		request.Namespaces = append(request.Namespaces, object.GetNamespace())
	}
	named := slices.DeleteFunc(append(request.Namespaces, namespace), func(name string) bool { return name == "" })
	request.Namespaces = slices.Compact(slices.Sorted(slices.Values(named)))
	return nil
}

// widen adds to the request all types that the objects of a component may have after its whole record was lost: the types of
// kept revisions, and the managed types. In a deletion without kept revisions these are all types.
func (k *Keeper) widen(ctx context.Context, obj identity.Component, request *reconciler.RecoverRequest) (err error) {
	var namespace string
	if namespace, request.Patterns, err = k.Configured(obj); err != nil {
		return err
	}
	request.Since = obj.GetCreationTimestamp().Time
	request.Namespaces = append(request.Namespaces, obj.GetNamespace())
	_ = k.seek(request, namespace) // no object, no error
	var sets []revisions.Set
	if k.Revisions != nil {
		record, err := k.Revisions.Read(ctx, k.Self.Revisions(obj))
		if err == nil {
			sets, err = record.Sets(ctx)
		}
		if _, lost := errors.AsType[*revisions.LostError](err); err != nil && !lost && !apierrors.IsForbidden(err) {
			return err
		}
	}
	for _, set := range sets {
		for _, raw := range set.Objects {
			object := &metav1.PartialObjectMetadata{}
			if err := errors.Join(json.Unmarshal(raw, object), k.seek(request, set.Namespace, object)); err != nil {
				return err
			}
		}
	}
	if len(request.Types) == 0 && !obj.GetDeletionTimestamp().IsZero() {
		request.Patterns = []reconciler.TypeInfo{{Group: "*", Kind: "*"}}
	}
	return nil
}
