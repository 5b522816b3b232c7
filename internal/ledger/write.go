// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Record makes the record durable, before anything is done that relies on it.
func (b *Book) Record(ctx context.Context, inventory v1alpha1.Inventory, commit Commit) error {
	stored, err := b.write(ctx, inventory, commit, true)
	if err == nil {
		err = commit(ctx, stored)
	}
	if err != nil {
		b.fail()
		return err
	}
	b.accept(stored, inventory.Items)
	return nil
}

// Keep writes what the status cannot hold, and returns what the status is to
// hold. Until that is durable, the record is the one before. After an error, and
// after a Record that failed, that is what is returned.
func (b *Book) Keep(ctx context.Context, inventory v1alpha1.Inventory, commit Commit) (v1alpha1.Inventory, error) {
	if b.failed {
		return b.stored, nil
	}
	stored, err := b.write(ctx, inventory, commit, false)
	if err != nil {
		b.fail()
		return b.stored, err
	}
	b.accept(stored, inventory.Items)
	return b.stored, nil
}

// fail gives up: what the Secrets hold is to be read again.
func (b *Book) fail() {
	b.failed = true
	b.ledger.forget(b.component)
}

// accept takes what was written for the record.
func (b *Book) accept(stored v1alpha1.Inventory, items []v1alpha1.InventoryItem) {
	b.stored, b.items = stored, items
	b.remember()
}

// write brings the Secrets in line with the record, and returns the form of it
// that is to be durable next. If all of it must become durable, even a deletion
// creates Secrets in place of broken ones.
func (b *Book) write(ctx context.Context, inventory v1alpha1.Inventory, commit Commit, must bool) (v1alpha1.Inventory, error) {
	if len(b.lost) > 0 {
		return b.stored, fmt.Errorf("the inventory is incomplete (%s); it is not written before it is rebuilt", b.lost[0])
	}
	size, err := sizeOf(inventory.Items)
	if err != nil {
		return b.stored, err
	}
	now := len(b.secrets)
	chunks := b.ledger.limits.chunks(size, now)
	broken := b.unreadable != nil || slices.ContainsFunc(b.secrets, func(s secret) bool { return s.broken })
	frozen := b.component.Deleting && !(must && broken)
	switch {
	case frozen && b.unreadable != nil:
		return b.stored, nil // the next pass rebuilds it once more
	case b.unreadable == nil && now == 0 && (chunks == 0 || frozen):
		return b.inStatus(inventory, headOf(b.stored)), nil
	case frozen, chunks == now && !broken && !b.doomed():
		return b.update(ctx, inventory, commit)
	case chunks == 0:
		return b.moveToStatus(ctx, inventory, commit)
	case now == 0 && b.unreadable == nil && size <= b.ledger.limits.hold:
		refused, err := b.refused(ctx)
		if err != nil {
			return b.stored, err
		}
		if refused {
			return b.inStatus(inventory, headOf(b.stored)), nil
		}
	}
	return b.moveToSet(ctx, inventory, commit, chunks)
}

// inStatus is a record whose items are in the status.
func (b *Book) inStatus(inventory v1alpha1.Inventory, head v1alpha1.InventoryChunks) v1alpha1.Inventory {
	inventory.Chunks = nil
	if b.stored.Chunks == nil {
		return inventory
	}
	return withHead(inventory, head)
}

// doomed tells whether somebody has deleted a Secret of the current set. Our
// finalizer is all that holds it.
func (b *Book) doomed() bool {
	return slices.ContainsFunc(b.secrets, func(s secret) bool { return s.deleting })
}

// moveToStatus takes the items back into the status.
func (b *Book) moveToStatus(ctx context.Context, inventory v1alpha1.Inventory, commit Commit) (v1alpha1.Inventory, error) {
	head := v1alpha1.InventoryChunks{Generation: b.nextGeneration()}
	if b.unreadable == nil {
		head.Namespace = b.stored.Chunks.Namespace
	}
	stored := b.inStatus(inventory, head)
	if err := b.commit(ctx, stored, commit); err != nil {
		return b.stored, err
	}
	b.retire(ctx)
	return stored, nil
}

// commit makes an intermediate state durable.
func (b *Book) commit(ctx context.Context, stored v1alpha1.Inventory, commit Commit) error {
	if err := commit(ctx, stored); err != nil {
		return err
	}
	b.stored, b.unreadable = stored, nil
	return nil
}

// nextGeneration is the number of a set that nobody has begun.
func (b *Book) nextGeneration() int64 {
	last := int64(0)
	if b.unreadable == nil && b.stored.Chunks != nil {
		last = b.stored.Chunks.Generation
	}
	for _, stray := range b.strays {
		last = max(last, stray.generation)
	}
	return last + 1
}
