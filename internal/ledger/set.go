// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// TooLargeError means that a record does not even fit into Secrets.
type TooLargeError struct{ Why string }

// Error says what to do.
func (e *TooLargeError) Error() string {
	return "the inventory is too large: " + e.Why + "; split the component into several"
}

// moveToSet writes all items into a new set of Secrets.
func (b *Book) moveToSet(ctx context.Context, inventory v1alpha1.Inventory, commit Commit, chunks int) (v1alpha1.Inventory, error) {
	changes, n, err := packAll(inventory.Items, chunks)
	if err != nil {
		return b.stored, err
	}
	types := typesOf(inventory.Items)
	if len(types) > maxTypes {
		return b.stored, &TooLargeError{Why: fmt.Sprintf("it names objects of %d types, and %d are possible", len(types), maxTypes)}
	}
	head := v1alpha1.InventoryChunks{Generation: b.nextGeneration(), Revision: 1, Types: types, Namespaces: namespacesOf(inventory.Items)}
	head.Current = head.Generation
	if b.component.Namespace == "" {
		head.Namespace = b.ledger.options.Namespace
	}
	// A head that cannot be read is left as it is until it is replaced: the types
	// that it names may be all that is left of the record.
	if b.unreadable == nil {
		intent := headOf(b.stored)
		intent.Generation = head.Generation
		if err := b.commit(ctx, withHead(b.stored, intent), commit); err != nil {
			return b.stored, err
		}
	}
	secrets, err := b.createSet(ctx, head, changes, n)
	if err != nil {
		return b.stored, err
	}
	head.Chunks = make([]v1alpha1.InventoryChunk, n)
	for _, c := range changes {
		c.chunk.Revision = head.Revision
		head.Chunks[c.index] = c.chunk
	}
	stored := withHead(inventory, head)
	if err := b.commit(ctx, stored, commit); err != nil {
		return b.stored, err
	}
	b.retire(ctx)
	b.secrets = secrets
	return stored, nil
}

// packAll packs the items into as many chunks as it takes.
func packAll(items []v1alpha1.InventoryItem, chunks int) ([]change, int, error) {
	for ; chunks <= maxChunks; chunks *= 2 {
		var changes []change
		largest := 0
		for i, part := range distribute(items, chunks) {
			c, err := changeOf(i, part, "")
			if err != nil {
				return nil, 0, err
			}
			if c != nil {
				changes = append(changes, *c)
				largest = max(largest, len(c.entry))
			}
		}
		if largest <= maxEntry {
			return changes, chunks, nil
		}
	}
	return nil, 0, &TooLargeError{Why: fmt.Sprintf("its %d objects do not fit into %d Secrets", len(items), maxChunks)}
}

// createSet creates all Secrets of a set, also for chunks that are still empty: in
// deletion none can be created.
func (b *Book) createSet(ctx context.Context, head v1alpha1.InventoryChunks, changes []change, n int) ([]secret, error) {
	namespace := b.component.Namespace
	if namespace == "" {
		namespace = head.Namespace
	}
	entries := make([][]byte, n)
	for _, c := range changes {
		entries[c.index] = c.entry
	}
	names := b.ledger.naming(b.component)
	secrets := make([]secret, n)
	err := parallel(n, func(i int) error {
		object := b.ledger.newSecret(b.component, namespace, names.name(head.Generation, int64(i)), head.Revision, entries[i])
		if entries[i] == nil {
			object.Data = nil
		}
		if err := b.ledger.options.Client.Create(ctx, object, client.FieldOwner(b.ledger.options.FieldOwner)); err != nil {
			return fmt.Errorf("create Secret %s/%s for a part of the inventory: %w", namespace, object.Name, err)
		}
		secrets[i], _ = b.ledger.factsOf(b.component, object)
		secrets[i].entries = entriesOf(object.Data)
		return nil
	})
	return secrets, err
}

// parallelism is how many Secrets are written at once.
const parallelism = 8

// parallel calls f for 0 to n-1, and returns the first error.
func parallel(n int, f func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(parallelism)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}
