// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/gzipped"
)

// DefaultThreshold is how large the items may be in the status, in bytes of JSON: the items of
// about 280 objects. The status is read, decoded, compared and written with every reconcile, and
// sent to every client that watches the component.
//
// Limit: the inventory in the status, as JSON: about 280 objects. A larger one is in Secrets beside the
// component.
const DefaultThreshold = 64 << 10

const (
	// maxChunks bounds the size of the head.
	//
	// Unit: Secrets
	// Limit: the Secrets of the inventory of one component; beyond it the component stalls with the reason
	// Invalid.
	maxChunks = 256
	// maxEntry bounds an entry of a Secret. There are two of them, or three
	// after a crash, and a Secret holds at most 1 MiB.
	//
	// Limit: the part of an inventory in one Secret.
	maxEntry = 320 << 10
	// maxContent bounds the unpacked content of a chunk: a small entry may unpack to anything.
	maxContent = 16 << 20
)

// limits are sizes of items in bytes of JSON.
type limits struct {
	spill  int // a larger inventory is moved from the status to Secrets
	hold   int // an inventory of at most this size may stay in the status if Secrets are not allowed
	back   int // a smaller inventory is moved back to the status
	aim    int // the size of a chunk in a new set
	most   int // more than this on average needs more chunks
	fewest int // less than this on average needs fewer chunks
}

// limitsFor leaves room between the limits, so that an inventory near one of them
// does not move back and forth.
func limitsFor(threshold int) limits {
	return limits{spill: threshold, hold: 4 * threshold, back: threshold * 3 / 4, aim: threshold, most: 2 * threshold, fewest: threshold / 8}
}

// chunks returns the number of chunks for items of a size, 0 for the status,
// given the number that there is. It is always a power of two.
func (l limits) chunks(size, now int) int {
	switch {
	case now == 0 && size <= l.spill, now > 0 && size < l.back:
		return 0
	case now > 0 && size <= now*l.most && (now <= 2 || size >= now*l.fewest):
		return now
	}
	n := 2
	for n < maxChunks && size > n*l.aim {
		n *= 2
	}
	return n
}

// encodedItem is an item and its JSON.
type encodedItem struct {
	item *v1alpha1.InventoryItem
	raw  []byte
}

// expectedGrowth is the growth of an item when its object is written: uid and hashes. An inventory
// is measured as if they were there, or each install would move it twice.
const expectedGrowth = 140

// encode returns the JSON of each item, and the size of all.
func encode(items []v1alpha1.InventoryItem) (encoded []encodedItem, size int, err error) {
	encoded = make([]encodedItem, 0, len(items))
	for i := range items {
		item := &items[i]
		raw, err := json.Marshal(item)
		if err != nil {
			return nil, 0, fmt.Errorf("encode the inventory item of %s %s/%s: %w", item.Kind, item.Namespace, item.Name, err)
		}
		encoded = append(encoded, encodedItem{item, raw})
		if size += len(raw) + 1; item.UID == "" {
			size += expectedGrowth
		}
	}
	return encoded, size, nil
}

// content is the JSON of the items of a chunk.
type content struct {
	count int
	raw   []byte
}

// distribute returns the content of each chunk.
func distribute(items []encodedItem, chunks int) []content {
	contents := make([]content, chunks)
	for _, item := range items {
		c := &contents[chunkOf(*item.item, chunks)]
		separator := byte(',')
		if c.count == 0 {
			separator = '['
		}
		c.raw = append(append(c.raw, separator), item.raw...)
		c.count++
	}
	for i := range contents {
		if contents[i].count > 0 {
			contents[i].raw = append(contents[i].raw, ']')
		}
	}
	return contents
}

// chunkOf returns the index of the chunk that an object belongs to. It must never change: it tells
// which objects are missing when a chunk is lost.
func chunkOf(item v1alpha1.InventoryItem, chunks int) int {
	parts := fnv.New64a()
	for _, part := range []string{item.Group, item.Kind, item.Namespace, item.Name} {
		_, _ = io.WriteString(parts, part+"\x00") // a byte that no part contains
	}
	hash := parts.Sum64()
	// The lower bits of names that differ in their last letters are not mixed enough.
	hash ^= hash >> 33
	hash *= 0xff51afd7ed558ccd
	hash ^= hash >> 33
	return int(hash & uint64(chunks-1))
}

// change is a new content of a chunk.
type change struct {
	index int
	chunk v1alpha1.InventoryChunk
	entry []byte // nil if the chunk becomes empty; then nothing is written
}

// changeOf returns nil if the chunk has that content already.
func changeOf(index int, c content, before string) *change {
	if c.count == 0 {
		if before == "" {
			return nil
		}
		return &change{index: index}
	}
	hash := hashOf(c.raw)
	if hash == before {
		return nil
	}
	return &change{index: index, chunk: v1alpha1.InventoryChunk{Count: int32(c.count), Hash: hash}, entry: gzipped.Pack(c.raw)}
}

func hashOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// unpack returns the items of an entry, if its content matches the head.
func unpack(entry []byte, chunk v1alpha1.InventoryChunk) ([]v1alpha1.InventoryItem, error) {
	raw, err := gzipped.Unpack(entry, maxContent)
	switch {
	case errors.Is(err, gzipped.ErrTooLarge):
		return nil, fmt.Errorf("it unpacks to more than %d bytes", maxContent)
	case err != nil:
		return nil, errors.New("it is not compressed as it was written")
	case hashOf(raw) != chunk.Hash:
		return nil, errors.New("its hash is not the one in the status")
	}
	var items []v1alpha1.InventoryItem
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("it holds no items: %w", err)
	}
	if len(items) != int(chunk.Count) {
		return nil, fmt.Errorf("it holds %d items, and the status says %d", len(items), chunk.Count)
	}
	return items, nil
}

// sorted orders items as the planner does, by key.
func sorted(items []v1alpha1.InventoryItem) []v1alpha1.InventoryItem {
	slices.SortStableFunc(items, func(a, b v1alpha1.InventoryItem) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return items
}
