// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// reasonInventoryRebuilt means that a Secret with a part of the inventory was lost, or the whole status, and the objects
// were found again by their ownership label and annotation. The note names types that may not be listed.
//
// Event type: Warning
// What to do: find out what deletes or changes the Secrets of the inventory, or the status, beside the operator.
// Objects that had lost both label and annotation are not dependents any more.
const reasonInventoryRebuilt = "InventoryRebuilt"

// keepTimeout bounds the last writes of the inventory in a reconcile that is cut off.
const keepTimeout = 15 * time.Second

// storedInventory is the inventory of one component in the course of one reconcile. What the
// status holds of it is always something that may become durable at any moment.
type storedInventory struct {
	snapshot *inventory.Snapshot
	status   func() *Status
	commit   inventory.Commit
	lock     *LeaderLock // may be nil
	// recorded is what is durable.
	recorded []v1alpha1.InventoryItem
	// operator is what the inventory names as the operator that sealed it.
	operator *v1alpha1.InventoryOperator
}

// openInventory reads the inventory, wherever it is kept, and rebuilds what was lost of
// it. The fast path does not look whether the Secrets are as they were.
func (h *handler) openInventory(ctx context.Context, obj Component, commit session.Commit, t targets.Connection, policies reconciler.Policies, fastPath bool) (*storedInventory, error) {
	lock := h.settings.leaderLock
	if err := lock.leading(); err != nil {
		return nil, err
	}
	snapshot, err := h.openSnapshot(ctx, obj, fastPath)
	if err != nil {
		return nil, h.self.About(obj, err)
	}
	operator, err := h.operator(ctx)
	if err != nil {
		return nil, err
	}
	opened := &storedInventory{snapshot: snapshot, status: obj.GetStatus, lock: lock, operator: operator}
	opened.recorded = snapshot.Inventory().Items
	opened.commit = func(ctx context.Context, stored v1alpha1.Inventory) error {
		before := obj.GetStatus().Inventory
		obj.GetStatus().Inventory = stored
		if err := commit(ctx); err != nil {
			obj.GetStatus().Inventory = before
			return err
		}
		if !selects(h.settings.selector, obj) {
			return errNotSelected
		}
		opened.recorded = stored.Items
		return nil
	}
	if err := snapshot.CollectGarbage(ctx, opened.commit); err != nil {
		return nil, err
	}
	if len(snapshot.Losses()) > 0 {
		err = h.rebuild(ctx, obj, opened, t, policies)
	}
	if err == nil {
		err = h.takeOver(ctx, obj, opened)
	}
	_ = h.eraseFormer(ctx, obj) // it is tried again, at the latest when the component is deleted
	return opened, err
}

func (h *handler) openSnapshot(ctx context.Context, obj Component, fastPath bool) (*inventory.Snapshot, error) {
	store, component, stored := h.storeOf(obj), h.self.Inventory(obj), obj.GetStatus().Inventory
	if fastPath {
		if snapshot, known := store.OpenCached(component, stored); known {
			return snapshot, nil
		}
	}
	return store.Open(ctx, component, stored)
}

// rebuild finds the objects of lost parts of the inventory by their labels and annotations.
// Until that has succeeded, nothing is planned: the missing objects would look like objects
// that were never recorded. In deletion, where nothing is added to an inventory, the result
// is not made durable, unless all was lost: the next process does it again.
func (h *handler) rebuild(ctx context.Context, obj Component, stored *storedInventory, t targets.Connection, policies reconciler.Policies) error {
	loss, whole, deleting := stored.snapshot.Losses()[0], obj.GetStatus().Inventory.IsLost(), !obj.GetDeletionTimestamp().IsZero()
	request := reconciler.RecoverRequest{
		Owner: h.self.Owner(obj), Inventory: stored.inventory(), Types: stored.snapshot.Types(), Namespaces: stored.snapshot.Namespaces(),
		// No other policy is part of an inventory; and a deletion ignores mistakes in them.
		Policies: reconciler.Policies{Delete: policies.Delete, AdoptOperator: h.self.FormerName(obj)},
	}
	var found []v1alpha1.InventoryItem
	var unlisted []string
	var err error
	if whole {
		err = h.widen(ctx, obj, &request)
	}
	if err == nil {
		found, unlisted, err = t.Engine.Recover(ctx, request)
	}
	if err != nil {
		err = fmt.Errorf("a part of the inventory is lost (%s) and cannot be rebuilt yet: %w", loss, err)
		if deleting && !verdict.IsForbidden(err) {
			err = &verdict.UnfinishedError{Facts: verdict.Facts{Blocked: h.self.About(obj, err).Error() + h.abandonHint(obj), Fallback: h.remembered(obj).idle.Idle()}, Cause: err}
		}
		return err
	}
	count := stored.snapshot.Restore(found)
	note := fmt.Sprintf("a part of the inventory was lost (%s); %s were found again by their ownership label and annotation", loss, verdict.ObjectCount(count))
	if len(unlisted) > 0 {
		note += "; types that may not be listed were left out: " + strings.Join(unlisted[:min(len(unlisted), verdict.MaxNamed)], ", ")
	}
	if !whole || count+len(unlisted) > 0 { // otherwise the claim was durable and nothing else
		h.telemetry.Warn(obj, reasonInventoryRebuilt, "Read", note)
	}
	if deleting && !whole {
		return nil
	}
	err = stored.save(ctx, stored.inventory())
	if deleting && apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // no Secret can be made; the next reconcile looks for the objects again
	}
	return err
}

// noteLost notes that the record of a component was lost: the component has our finalizer or that of the former operator, and its status is empty, or says that
// something was applied and has no inventory. It was restored without its status, or a client or a definition dropped it. A component
// that this process has just claimed has no status yet, and earlier versions wrote no format for an empty inventory.
func (h *handler) noteLost(obj Component, claiming bool) {
	status := obj.GetStatus()
	known := status.Inventory.Format > 1 || status.Inventory.Chunks != nil || !status.Inventory.IsEmpty()
	applied := status.AppliedGeneration != 0 || status.LastAppliedAt != nil
	former := h.self.FormerName(obj)
	claimed := slices.ContainsFunc(obj.GetFinalizers(), func(finalizer string) bool { return finalizer == h.self.Finalizer || finalizer == former })
	if known || claiming || !claimed || status.State != "" && !applied {
		return
	}
	status.Inventory.Lose()
	h.memory.takeRendered(client.ObjectKeyFromObject(obj)) // all that is rendered is looked for
}

// noteRendered adds to a record that was lost which types and namespaces what is rendered has.
func (h *handler) noteRendered(obj Component, namespace string, rendered []client.Object) error {
	inventory := &obj.GetStatus().Inventory
	if !inventory.IsLost() {
		return nil
	}
	var sought reconciler.RecoverRequest
	err := h.seek(&sought, namespace, rendered...)
	inventory.Chunks.Types, inventory.Chunks.Namespaces = sought.Types, sought.Namespaces
	return err
}

// seek adds to a request the types and namespaces of objects that are deployed in a namespace.
func (h *handler) seek(request *reconciler.RecoverRequest, namespace string, objects ...client.Object) error {
	for _, object := range objects {
		gvk, err := h.local.GroupVersionKindFor(object)
		if err != nil {
			return err
		}
		request.Types = append(request.Types, v1alpha1.InventoryType{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind})
		request.Namespaces = append(request.Namespaces, object.GetNamespace())
	}
	request.Namespaces = slices.DeleteFunc(append(request.Namespaces, namespace), func(name string) bool { return name == "" })
	slices.Sort(request.Namespaces)
	request.Namespaces = slices.Compact(request.Namespaces)
	return nil
}

// widen adds to the request all types that the objects of a component may have after its whole record was lost: the types of
// kept revisions, and the managed types. In a deletion without kept revisions these are all types.
func (h *handler) widen(ctx context.Context, obj Component, request *reconciler.RecoverRequest) (err error) {
	if request.Patterns, err = managedTypesOf(obj); err != nil {
		return err
	}
	request.Since = obj.GetCreationTimestamp().Time
	resolved, _ := resolveConfig(obj, h.settings) // other mistakes do not matter here
	if err := errors.Join(h.seek(request, obj.GetNamespace()), h.seek(request, resolved.Namespace)); err != nil {
		return err
	}
	var sets []revisions.Set
	if store := h.revisions.Renderer.Revisions; store != nil {
		record, err := store.Read(ctx, h.self.Revisions(obj))
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
			if err := errors.Join(json.Unmarshal(raw, object), h.seek(request, set.Namespace, object)); err != nil {
				return err
			}
		}
	}
	if len(request.Types) == 0 && !obj.GetDeletionTimestamp().IsZero() {
		request.Patterns = []reconciler.TypeInfo{{Group: "*", Kind: "*"}}
	}
	return nil
}

// inventory returns the whole inventory. What was hashed with another key than ours says nothing:
// it is left out, because what is saved from then on names our key.
func (i *storedInventory) inventory() v1alpha1.Inventory {
	inventory := i.snapshot.Inventory()
	if by := inventory.Operator; by != nil && by.Key != i.operator.Key {
		inventory.Items = reconciler.Rekeyed(inventory.Items)
	}
	return inventory
}

// save makes the inventory durable, before the engine acts.
func (i *storedInventory) save(ctx context.Context, inventory v1alpha1.Inventory) error {
	if err := i.lock.leadingFor(creating); err != nil {
		return err
	}
	return i.snapshot.Save(ctx, i.signed(inventory), i.commit)
}

// signed returns the inventory with the name of this operator, unless it is empty. An empty one has a format: it is not lost.
func (i *storedInventory) signed(inventory v1alpha1.Inventory) v1alpha1.Inventory {
	inventory.Format = cmp.Or(inventory.Format, v1alpha1.InventoryFormat)
	if inventory.Operator = nil; !inventory.IsEmpty() {
		inventory.Operator = i.operator
	}
	return inventory
}

// saveOutcome saves the inventory as the engine returned it; the status is durable at the end
// of the reconcile. The end of the context of a reconcile does not lose what was done.
func (i *storedInventory) saveOutcome(ctx context.Context, inventory v1alpha1.Inventory, err error) error {
	if notLeading := i.lock.leading(); notLeading != nil {
		// The process that leads now finds out by itself what became of the objects.
		return errors.Join(err, notLeading)
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), keepTimeout)
		defer cancel()
	}
	stored, keepErr := i.snapshot.SaveSecrets(ctx, i.signed(inventory), i.commit)
	i.status().Inventory = stored
	if keepErr == nil {
		return err
	}
	return errors.Join(err, keepErr)
}

// isTransient reports whether the inventory differs from what is durable in nothing but what became of writes. All
// of that is found out again by a process that does not know it.
func (i *storedInventory) isTransient(inventory v1alpha1.Inventory) bool {
	status := i.status()
	if current := (*revision.Status)(status).Current(); current != nil && current.RollbackTo != 0 {
		return false
	}
	if status.Inventory.Chunks != nil || status.Rollback != nil || status.Approval != nil || status.AdoptedRelease != nil {
		return false
	}
	return slices.EqualFunc(i.recorded, inventory.Items, func(durable, now v1alpha1.InventoryItem) bool {
		if durable.UID == "" && (now.RunOn != "" || now.Group == "batch") {
			return false // it may be removed after its end, and must not run again
		}
		if now.Intended == "" && now.Digest == durable.Intended {
			now.Intended = durable.Intended // it was created as intended
		}
		now.UID, now.Seal, now.Digest, now.ObservedHash, now.AppliedHash = durable.UID, durable.Seal, durable.Digest, durable.ObservedHash, durable.AppliedHash
		now.AppliedAt, now.Replicas, now.Altered = durable.AppliedAt, durable.Replicas, durable.Altered
		return now.Phase == vocabulary.PhaseApplied && equality.Semantic.DeepEqual(durable, now)
	})
}

// saveEmpty makes it durable that nothing is left, so that no process looks for what the
// Secrets held after they were removed.
func (i *storedInventory) saveEmpty(ctx context.Context) error {
	if i.status().Inventory.Chunks == nil {
		return nil
	}
	return i.commit(ctx, i.status().Inventory)
}

// ordinaryPhase is the name of PhaseApplied in metrics.
const ordinaryPhase = "Applied"

// dependents counts the dependents of the component by phase, wherever its inventory
// is kept. If no reconcile has read it yet, only their number is known, and all of them count
// as being in the ordinary phase.
func (h *handler) dependents(obj Component) map[string]int {
	stored := obj.GetStatus().Inventory
	items, known := h.inventory.Items(h.self.Inventory(obj), stored)
	if !known {
		return map[string]int{ordinaryPhase: stored.Count()}
	}
	count := map[string]int{}
	for _, item := range items {
		count[cmp.Or(string(item.Phase), ordinaryPhase)]++
	}
	return count
}

// cleanUpOrphans removes the finalizers of orphaned inventory Secrets. It runs when the operator
// starts, until it has succeeded: after the forced removal of a component, a Secret of its
// inventory would block the deletion of the namespace. An operator that may not list Secrets
// everywhere works all the same.
func (h *handler) cleanUpOrphans(ctx context.Context) error {
	log, orphans := logf.FromContext(ctx), h.inventory.Orphans()
	for attempt := 0; ; attempt++ {
		err := h.cleanUpOrphansOnce(ctx, orphans)
		switch {
		case err == nil, ctx.Err() != nil:
			return nil
		case apierrors.IsForbidden(err):
			log.V(1).Info("cannot look for Secrets of inventories that outlive their component", "error", err.Error())
			return nil
		}
		after := backoff.Delay(attempt, cleanupBase, cleanupLimit)
		switch {
		case !meta.IsNoMatchError(err):
			log.Error(err, "Secrets of inventories may outlive their components; will be tried again", "after", after)
		case attempt == 0: // until the definition is installed, there is nothing new to say
			log.Info("Secrets of inventories that outlive their component are looked for when the type is served", "type", h.self.Kind.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(after):
		}
	}
}

// cleanUpOrphansOnce is one attempt of cleanUpOrphans.
func (h *handler) cleanUpOrphansOnce(ctx context.Context, orphans *inventory.Orphans) error {
	mapping, err := h.mapper.RESTMapping(h.self.Kind.GroupKind(), h.self.Kind.Version)
	if err != nil {
		return fmt.Errorf("find out whether the type %s has namespaces: %w", h.self.Kind, err)
	}
	kind := inventory.Kind{Group: h.self.Kind.Group, Kind: h.self.Kind.Kind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	return orphans.CleanUp(ctx, kind, h.componentState)
}

// componentState returns whether the very component still exists. It may exist although the
// watch of this process does not cover it.
func (h *handler) componentState(ctx context.Context, c inventory.Component) (inventory.State, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(h.self.Kind)
	switch err := h.local.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, obj); {
	case types.IsGone(err, c.Name):
		return inventory.StateGone, nil
	case err != nil: // perhaps its path is not served just now, and it is there
		return "", err
	case obj.GetUID() != c.UID:
		return inventory.StateGone, nil
	case !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, h.self.Finalizer):
		return inventory.StateWithoutFinalizer, nil
	default:
		return inventory.StateElsewhere, nil
	}
}

// cleanupBase and cleanupLimit are the shortest and the longest delay between two attempts to
// find out whether a component with remaining Secrets still exists. If its type was removed
// from the server, that takes long.
const (
	cleanupBase  = 5 * time.Second
	cleanupLimit = 10 * time.Minute
)

// cleanUpInventory removes the Secrets of a component that is gone, and drops what is cached
// about one that belongs to another process.
func (h *handler) cleanUpInventory(ctx context.Context, key client.ObjectKey) {
	if err := h.inventory.CleanUpComponent(ctx, key, h.componentState); err != nil {
		h.retryCleanup(ctx, key, err)
		return
	}
	h.cleanups.Reset(key)
}

func (h *handler) retryCleanup(ctx context.Context, key client.ObjectKey, err error) {
	after := h.cleanups.Next(key)
	logf.FromContext(ctx).Error(err, "will be tried again", "after", after)
	h.triggers.RequestFast(key, after)
}
