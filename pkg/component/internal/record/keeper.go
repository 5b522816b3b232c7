// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/reconciler"
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

	// erased has the keys of components whose former operator has left no Secrets.
	erased sync.Map
	// retries has the streaks of failed attempts to forget a component, by its key.
	retries sync.Map
}

// Engine is the part of reconciler.Reconciler that finds the objects of a component.
type Engine interface {
	Recover(ctx context.Context, request reconciler.RecoverRequest) (found []v1alpha1.InventoryItem, unlisted []string, err error)
}

// Open reads the inventory, wherever it is kept, and rebuilds lost parts of it; the error is a LostError if they cannot be
// rebuilt. The fast path does not check that the Secrets have not changed.
func (k *Keeper) Open(ctx context.Context, obj identity.Component, commit func(context.Context) error, engine Engine, deletePolicy v1alpha1.DeletePolicy, fastPath bool) (*Record, error) {
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
	return &Record{keeper: k, obj: obj, snapshot: snapshot, sealer: &sealer, recorded: snapshot.Inventory().Items}, nil
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

// ordinaryPhase is the name of PhaseApplied in metrics.
const ordinaryPhase = "Applied"

// Count counts the dependents of the component by phase, wherever its inventory is kept. If no reconcile has read it yet, only the number
// of dependents is known, and all of them count as being in the ordinary phase.
func (k *Keeper) Count(obj identity.Component) map[string]int {
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

// EraseFormer removes the Secrets that the former operator kept, if the component does not belong to it any more. A process does this
// once for a component.
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
