// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package record keeps the inventories of components: a [Keeper] opens and removes them, and a [Record] is one in a reconcile. Package
// internal/inventory stores them.
package record

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// Keeper keeps the inventories of the components of an operator. It remembers of components only what saves requests. It is safe for
// concurrent use; one caller at a time works on one component.
type Keeper struct {
	Self *identity.Operator
	// Sealer is the operator as inventories name it, without the identifier of its digest key.
	Sealer    v1alpha1.InventoryOperator
	DigestKey func(context.Context) ([]byte, error)
	Store     *inventory.Store
	Revisions *revisions.Store // may be nil
	Local     client.Client    // reads from the server
	Mapper    meta.RESTMapper
	Telemetry *telemetry.Telemetry
	// Leading fails if another process may lead; MayCreate fails earlier, so that time is left to create objects.
	Leading, MayCreate func() error
	// Selected fails if the operator does not select a component any more.
	Selected func(identity.Component) error
	// Configured returns the deployment namespace of a component and its additional managed types.
	Configured func(identity.Component) (namespace string, managedTypes []reconciler.TypeInfo, err error)
	// RequestFast requests a reconcile of a component.
	RequestFast func(key client.ObjectKey, after time.Duration)

	// erased has the keys of components for which no Secret of the former operator is left.
	erased sync.Map
	// retries has the streaks of failed attempts to forget a component, by its key.
	retries sync.Map
}

// Open reads the inventory, wherever it is kept, and rebuilds lost parts of it; the error is a LostError if they cannot be
// rebuilt. The fast path does not check that the Secrets have not changed.
func (k *Keeper) Open(ctx context.Context, obj identity.Component, commit func(context.Context) error, engine targets.Engine, deletePolicy v1alpha1.DeletePolicy, fastPath bool) (*Record, error) {
	if err := k.Leading(); err != nil {
		return nil, err
	}
	r, err := k.read(ctx, obj, fastPath)
	if err != nil {
		return nil, err
	}
	r.commit = commit
	if err := r.snapshot.CollectGarbage(ctx, r.write); err != nil {
		return nil, err
	}
	if len(r.snapshot.Losses()) > 0 {
		err = r.rebuild(ctx, engine, deletePolicy)
	}
	if err == nil {
		err = r.takeOver(ctx)
	}
	_ = k.EraseFormer(ctx, obj) // it is tried again, at the latest when the component is deleted
	return r, err
}

func (k *Keeper) open(ctx context.Context, obj identity.Component, fastPath bool) (*inventory.Snapshot, error) {
	store, component, stored := k.storeOf(obj), k.Self.Inventory(obj), obj.GetStatus().Inventory
	if fastPath {
		if snapshot, known := store.OpenCached(component, stored); known {
			return snapshot, nil
		}
	}
	return store.Open(ctx, component, stored)
}

// storeOf returns the store of the inventory. As long as a component belongs to its former operator, this is the store of that operator.
func (k *Keeper) storeOf(obj identity.Component) *inventory.Store {
	if former := k.Self.Former(obj); former != "" {
		return k.Store.Of(former)
	}
	return k.Store
}

// read returns a Record that cannot be saved yet.
func (k *Keeper) read(ctx context.Context, obj identity.Component, fastPath bool) (*Record, error) {
	snapshot, err := k.open(ctx, obj, fastPath)
	if err != nil {
		return nil, k.Self.About(obj, err)
	}
	key, err := k.DigestKey(ctx)
	if err != nil {
		return nil, err
	}
	sealer := k.Sealer
	sealer.Key = digest.Hasher{Key: key}.ID()
	return &Record{keeper: k, obj: obj, snapshot: snapshot, sealer: &sealer}, nil
}

// Read returns the inventory and changes nothing in it.
func (k *Keeper) Read(ctx context.Context, obj identity.Component) (v1alpha1.Inventory, error) {
	r, err := k.read(ctx, obj, false)
	if err != nil {
		return v1alpha1.Inventory{}, err
	}
	if losses := r.snapshot.Losses(); len(losses) > 0 {
		return v1alpha1.Inventory{}, k.Self.About(obj, fmt.Errorf(
			"a part of the inventory is lost (%s); nothing can be planned before the operator has rebuilt it in its next reconcile", losses[0]))
	}
	return r.Inventory(), nil
}

// Items returns the items of the inventory that are not lost.
func (k *Keeper) Items(ctx context.Context, obj identity.Component) ([]v1alpha1.InventoryItem, error) {
	snapshot, err := k.open(ctx, obj, false)
	if err != nil {
		return nil, err
	}
	return snapshot.Inventory().Items, nil
}

// Count counts the dependents of the component by phase, wherever its inventory is kept. If no reconcile has read it yet, only the number
// of dependents is known, and all of them count as being in the ordinary phase.
func (k *Keeper) Count(obj identity.Component) map[string]int {
	const ordinaryPhase = "Applied" // the name of PhaseApplied in metrics
	stored := obj.GetStatus().Inventory
	items, known := k.Store.Items(k.Self.Inventory(obj), stored)
	if !known {
		return map[string]int{ordinaryPhase: stored.Count()}
	}
	count := map[string]int{}
	for _, item := range items {
		count[cmp.Or(string(item.Phase), ordinaryPhase)]++
	}
	return count
}

// Erase removes the Secrets of the inventory.
func (k *Keeper) Erase(ctx context.Context, obj identity.Component) error {
	return k.storeOf(obj).Erase(ctx, k.Self.Inventory(obj), obj.GetStatus().Inventory)
}

// EraseFormer removes the Secrets of the former operator, once in a process, if the component does not belong to it any more.
func (k *Keeper) EraseFormer(ctx context.Context, obj identity.Component) error {
	former, key, status := k.Self.FormerName(obj), client.ObjectKeyFromObject(obj), obj.GetStatus()
	if _, erased := k.erased.Load(key); erased || former == "" || former == status.Reconciler || status.Inventory.Chunks == nil {
		return nil
	}
	left := v1alpha1.Inventory{Chunks: &v1alpha1.InventoryChunks{Namespace: status.Inventory.Chunks.Namespace}}
	err := k.Store.Of(former).Erase(ctx, k.Self.Inventory(obj), left)
	if err != nil {
		logf.FromContext(ctx).Error(err, "Secrets of the former operator stay for now", "operator", former)
	} else {
		k.erased.Store(key, true)
	}
	return err
}

// cleanupBase and cleanupLimit are the shortest and the longest delay between two attempts to find out whether a component with remaining
// Secrets still exists. If its type was removed from the server, that takes long.
const (
	cleanupBase  = 5 * time.Second
	cleanupLimit = 10 * time.Minute
)

// CleanUpOrphans removes the finalizers of orphaned inventory Secrets. It runs when the operator starts, until it has succeeded: after the
// forced removal of a component, a Secret of its inventory would block the deletion of the namespace. An operator that may not list
// Secrets everywhere works all the same.
func (k *Keeper) CleanUpOrphans(ctx context.Context) error {
	log, orphans := logf.FromContext(ctx), k.Store.Orphans()
	for attempt := 0; ; attempt++ {
		err := k.cleanUpOrphansOnce(ctx, orphans)
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
			log.Info("Secrets of inventories that outlive their component are looked for when the type is served", "type", k.Self.Kind.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(after):
		}
	}
}

// cleanUpOrphansOnce is one attempt of CleanUpOrphans.
func (k *Keeper) cleanUpOrphansOnce(ctx context.Context, orphans *inventory.Orphans) error {
	gvk := k.Self.Kind
	mapping, err := k.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("find out whether the type %s has namespaces: %w", gvk, err)
	}
	kind := inventory.Kind{Group: gvk.Group, Kind: gvk.Kind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	return orphans.CleanUp(ctx, kind, k.stateOf)
}

// stateOf returns whether the very component still exists. It may exist although the watch of this process does not cover it.
func (k *Keeper) stateOf(ctx context.Context, c inventory.Component) (inventory.State, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(k.Self.Kind)
	switch err := k.Local.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, obj); {
	case types.IsGone(err, c.Name):
		return inventory.StateGone, nil
	case err != nil: // perhaps its path is not served just now, and it is there
		return "", err
	case obj.GetUID() != c.UID:
		return inventory.StateGone, nil
	case !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, k.Self.Finalizer):
		return inventory.StateWithoutFinalizer, nil
	default:
		return inventory.StateElsewhere, nil
	}
}

// Forget removes the Secrets of a component that is gone, and drops everything about a component that belongs to another process.
func (k *Keeper) Forget(ctx context.Context, key client.ObjectKey) {
	k.erased.Delete(key)
	if err := k.Store.CleanUpComponent(ctx, key, k.stateOf); err != nil {
		k.RetryForget(ctx, key, err)
		return
	}
	k.retries.Delete(key)
}

// RetryForget logs why a component that is gone cannot be forgotten yet, and requests another attempt.
func (k *Keeper) RetryForget(ctx context.Context, key client.ObjectKey, err error) {
	streak, _ := k.retries.LoadOrStore(key, &backoff.Streak{})
	after := streak.(*backoff.Streak).Next(cleanupBase, cleanupLimit)
	logf.FromContext(ctx).Error(err, "will be tried again", "after", after)
	k.RequestFast(key, after)
}
