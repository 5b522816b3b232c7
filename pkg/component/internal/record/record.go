// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// Record is the inventory of one component in the course of one reconcile. The part of it in the status may become durable at any moment.
type Record struct {
	keeper   *Keeper
	obj      identity.Component
	commit   func(context.Context) error
	snapshot *inventory.Snapshot
	// sealer is the operator that the inventory names as the operator that sealed it.
	sealer *v1alpha1.InventoryOperator
}

// Inventory returns the whole inventory, without digests of another key than ours: the next save names our key.
func (r *Record) Inventory() v1alpha1.Inventory {
	inventory := r.snapshot.Inventory()
	if by := inventory.Operator; by != nil && by.Key != r.sealer.Key {
		inventory.Items = reconciler.Rekeyed(inventory.Items)
	}
	return inventory
}

// Save makes the inventory durable, before the engine acts.
func (r *Record) Save(ctx context.Context, inventory v1alpha1.Inventory) error {
	if err := r.keeper.MayCreate(); err != nil {
		return err
	}
	return r.snapshot.Save(ctx, r.signed(inventory), r.write)
}

// signed returns the inventory with the name of this operator, unless it is empty. An empty one has a format: it is not lost.
func (r *Record) signed(inventory v1alpha1.Inventory) v1alpha1.Inventory {
	inventory.Format = cmp.Or(inventory.Format, v1alpha1.InventoryFormat)
	if inventory.Operator = nil; !inventory.IsEmpty() {
		inventory.Operator = r.sealer
	}
	return inventory
}

// write makes the status durable with a form of the inventory.
func (r *Record) write(ctx context.Context, stored v1alpha1.Inventory) error {
	before := r.obj.GetStatus().Inventory
	r.obj.GetStatus().Inventory = stored
	if err := r.commit(ctx); err != nil {
		r.obj.GetStatus().Inventory = before
		return err
	}
	return r.keeper.Selected(r.obj)
}

// SaveOutcome saves the inventory as the engine returned it; the status is durable at the end
// of the reconcile. The end of the context of a reconcile does not lose what was done.
func (r *Record) SaveOutcome(ctx context.Context, inventory v1alpha1.Inventory, err error) error {
	if notLeading := r.keeper.Leading(); notLeading != nil {
		return errors.Join(err, notLeading) // the process that leads now finds out by itself what became of the objects
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
		defer cancel()
	}
	stored, keepErr := r.snapshot.SaveSecrets(ctx, r.signed(inventory), r.write)
	r.obj.GetStatus().Inventory = stored
	if keepErr == nil {
		return err
	}
	return errors.Join(err, keepErr)
}

// SaveEmpty makes it durable that nothing is left, so that no process looks for what the Secrets held after they were removed.
func (r *Record) SaveEmpty(ctx context.Context) error {
	if r.obj.GetStatus().Inventory.Chunks == nil {
		return nil
	}
	return r.write(ctx, r.obj.GetStatus().Inventory)
}

// takeOver makes the component belong to this operator, in one write with the inventory, which moves to Secrets of this operator. A
// deletion ends under the name of the former operator: its finalizer cannot be replaced any more.
func (r *Record) takeOver(ctx context.Context) error {
	k, status, former := r.keeper, r.obj.GetStatus(), r.keeper.Self.Former(r.obj)
	if former == "" || !r.obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	whole := r.Inventory()
	if status.Inventory.Chunks != nil {
		var lost v1alpha1.Inventory
		lost.Lose()
		ours, err := k.Store.Open(ctx, k.Self.Inventory(r.obj), lost)
		if err != nil {
			return err
		}
		ours.Restore(whole.Items)
		r.snapshot = ours
	}
	status.Reconciler = k.Self.Name
	if err := r.Save(ctx, whole); err != nil {
		status.Reconciler = former
		return err
	}
	return nil
}
