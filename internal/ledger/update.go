// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// change is a new content of a chunk.
type change struct {
	index int
	chunk v1alpha1.InventoryChunk
	entry []byte // nil if the chunk becomes empty; then nothing is written
}

// update writes the chunks that changed into the current set.
func (b *Book) update(ctx context.Context, inventory v1alpha1.Inventory, commit Commit) (v1alpha1.Inventory, error) {
	changes, oversize, err := b.changes(inventory.Items)
	switch {
	case err != nil:
		return b.stored, err
	case oversize && !b.component.Deleting:
		return b.moveToSet(ctx, inventory, commit, 2*len(b.secrets))
	}
	if err := b.fence(ctx, changes, commit); err != nil {
		return b.stored, err
	}
	head := headOf(b.stored)
	if types := typesOf(inventory.Items); len(types) <= maxTypes {
		head.Types, head.Namespaces = types, namespacesOf(inventory.Items)
	}
	if len(changes) > 0 {
		head.Revision++
	}
	err = parallel(len(changes), func(i int) error {
		if changes[i].entry == nil {
			return nil
		}
		return b.put(ctx, changes[i].index, head.Revision, changes[i].entry)
	})
	if err != nil {
		return b.stored, err
	}
	for _, c := range changes {
		if c.chunk.Hash != "" {
			c.chunk.Revision = head.Revision
		}
		head.Chunks[c.index] = c.chunk
	}
	return withHead(inventory, head), nil
}

// changes compares the items with the head. A broken chunk, which is there in
// deletion only, stays as it is until all its objects are gone: what it has lost is
// found again by the next pass.
func (b *Book) changes(items []v1alpha1.InventoryItem) (changes []change, oversize bool, err error) {
	for i, part := range distribute(items, len(b.secrets)) {
		c, err := changeOf(i, part, b.stored.Chunks.Chunks[i].Hash)
		switch {
		case err != nil:
			return nil, false, err
		case c == nil, b.secrets[i].broken && c.entry != nil:
			continue
		}
		oversize = oversize || len(c.entry) > maxEntry
		changes = append(changes, *c)
	}
	return changes, oversize, nil
}

// changeOf returns nil if the chunk has that content already.
func changeOf(index int, items []v1alpha1.InventoryItem, before string) (*change, error) {
	if len(items) == 0 {
		if before == "" {
			return nil, nil
		}
		return &change{index: index}, nil
	}
	raw, err := content(items)
	if err != nil {
		return nil, err
	}
	hash := hashOf(raw)
	if hash == before {
		return nil, nil
	}
	entry, err := pack(raw)
	if err != nil {
		return nil, fmt.Errorf("compress the inventory: %w", err)
	}
	return &change{index: index, chunk: v1alpha1.InventoryChunk{Count: int32(len(items)), Hash: hash}, entry: entry}, nil
}

// fence makes sure that entries that are newer than the head, left by a crash or
// just written by somebody who takes himself for us, can no longer become part of
// the record: they are removed by the next write of their Secret.
func (b *Book) fence(ctx context.Context, changes []change, commit Commit) error {
	head := headOf(b.stored)
	newest := head.Revision
	for _, c := range changes {
		for _, revision := range b.secrets[c.index].entries {
			newest = max(newest, revision)
		}
	}
	if newest == head.Revision {
		return nil
	}
	head.Revision = newest
	return b.commit(ctx, withHead(b.stored, head), commit)
}

// put adds an entry to a Secret, and removes all but the one that the head names.
func (b *Book) put(ctx context.Context, index int, revision int64, entry []byte) error {
	s := &b.secrets[index]
	data := map[string]any{}
	for _, old := range s.entries {
		if b.stored.Chunks.Chunks[index].Hash == "" || old != b.stored.Chunks.Chunks[index].Revision {
			data[entryKey(old)] = nil
		}
	}
	data[entryKey(revision)] = entry
	answer, err := b.ledger.patch(ctx, *s, map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("write Secret %s/%s, which holds a part of the inventory: %w", s.namespace, s.name, err)
	}
	s.resourceVersion, s.entries = answer.ResourceVersion, entriesOf(answer.Data)
	return nil
}

// patch changes the very Secret that was read, if nobody changed it since.
func (l *Ledger) patch(ctx context.Context, s secret, body map[string]any) (*corev1.Secret, error) {
	metadata, _ := body["metadata"].(map[string]any)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["uid"], metadata["resourceVersion"] = s.uid, s.resourceVersion
	body["metadata"] = metadata
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	answer := &corev1.Secret{}
	answer.Namespace, answer.Name = s.namespace, s.name
	err = l.options.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(l.options.FieldOwner))
	return answer, err
}
