// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"

	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/inventory"
)

// operator is this operator as inventories name it.
func (h *handler) operator(ctx context.Context) (*v1alpha1.InventoryOperator, error) {
	key, err := h.digestKey.Get(ctx)
	if err != nil {
		return nil, err
	}
	me := &v1alpha1.InventoryOperator{Key: digest.Hasher{Key: key}.ID(), Namespace: h.settings.operatorNamespace}
	if lock := h.settings.leaderLock; lock != nil {
		me.Lease = lock.Describe()
	}
	return me, nil
}

// storeOf returns where the inventory is kept: with Secrets of that operator, as long as the component is its own.
func (h *handler) storeOf(obj Component) *inventory.Store {
	if former := h.self.Former(obj); former != "" {
		return h.inventory.Of(former)
	}
	return h.inventory
}

// takeOver makes the component our own, in one write with the inventory, which moves to Secrets of ours. A deletion ends under the
// name of the former operator: its finalizer cannot be replaced any more.
func (h *handler) takeOver(ctx context.Context, obj Component, stored *storedInventory) error {
	status, former := obj.GetStatus(), h.self.Former(obj)
	if former == "" || !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	whole := stored.inventory()
	if status.Inventory.Chunks != nil {
		var lost v1alpha1.Inventory
		lost.Lose()
		ours, err := h.inventory.Open(ctx, h.self.Inventory(obj), lost)
		if err != nil {
			return err
		}
		ours.Restore(whole.Items)
		stored.snapshot = ours
	}
	status.Reconciler = h.self.Name
	if err := stored.save(ctx, whole); err != nil {
		status.Reconciler = former
		return err
	}
	return nil
}

// eraseFormer removes the Secrets that the former operator kept, once the component is our own, and once in the life of a process.
func (h *handler) eraseFormer(ctx context.Context, obj Component) error {
	former, known, status := h.self.FormerName(obj), h.remembered(obj), obj.GetStatus()
	if former == "" || former == status.Reconciler || known.formerErased || status.Inventory.Chunks == nil {
		return nil
	}
	left := v1alpha1.Inventory{Chunks: &v1alpha1.InventoryChunks{Namespace: status.Inventory.Chunks.Namespace}}
	err := h.inventory.Of(former).Erase(ctx, h.self.Inventory(obj), left)
	if known.formerErased = err == nil; err != nil {
		logf.FromContext(ctx).Error(err, "Secrets of the former operator stay for now", "operator", former)
	}
	return err
}
