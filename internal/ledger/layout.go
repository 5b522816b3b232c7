// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// DefaultThreshold is how large the items may be in the status, in bytes of JSON:
// those of about 280 objects. Whatever the status holds is read, decoded, compared
// and written with every pass, and sent to everybody who watches the component.
const DefaultThreshold = 64 << 10

const (
	// maxChunks bounds the size of the head.
	maxChunks = 256
	// maxEntry bounds an entry of a Secret. There are two of them, or three
	// after a crash, and a Secret holds at most 1 MiB.
	maxEntry = 320 << 10
	// maxTypes bounds the head, too.
	maxTypes = 2000
)

// limits are sizes of items in bytes of JSON.
type limits struct {
	leave  int // more than this leaves the status
	hold   int // as much as this may stay there if it must not be kept elsewhere
	enter  int // less than this comes back
	aim    int // the size of a chunk in a new set
	most   int // more than this on average needs more chunks
	fewest int // less than this on average needs fewer chunks
}

// limitsFor leaves room between the limits, so that a record near one of them
// does not move back and forth.
func limitsFor(threshold int) limits {
	return limits{leave: threshold, hold: 4 * threshold, enter: threshold * 3 / 4, aim: threshold, most: 2 * threshold, fewest: threshold / 8}
}

// chunks returns the number of chunks for items of a size, 0 for the status,
// given the number that there is. It is always a power of two.
func (l limits) chunks(size, now int) int {
	switch {
	case now == 0 && size <= l.leave, now > 0 && size < l.enter:
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

// unknownYet is what an item grows by when its object is written: uid and hashes.
// A record is measured as if they were there, or each install would move it twice.
const unknownYet = 140

// sizeOf is the size of items in bytes of JSON.
func sizeOf(items []v1alpha1.InventoryItem) (int, error) {
	size := 0
	for i := range items {
		raw, err := json.Marshal(&items[i])
		if err != nil {
			return 0, encodeError(items[i], err)
		}
		size += len(raw) + 1
		if items[i].UID == "" {
			size += unknownYet
		}
	}
	return size, nil
}

func encodeError(item v1alpha1.InventoryItem, err error) error {
	return fmt.Errorf("encode the inventory item of %s %s/%s: %w", item.Kind, item.Namespace, item.Name, err)
}

// chunkOf returns the index of the chunk that an object belongs to. It must never
// change: it says which objects are missing when a chunk is lost.
func chunkOf(item v1alpha1.InventoryItem, chunks int) int {
	const offset, prime = 14695981039346656037, 1099511628211
	hash := uint64(offset)
	for _, part := range [...]string{item.Group, item.Kind, item.Namespace, item.Name} {
		for i := range len(part) {
			hash = (hash ^ uint64(part[i])) * prime
		}
		hash *= prime // as after a zero byte, which no part contains
	}
	// The lower bits of names that differ in their last letters are not mixed enough.
	hash ^= hash >> 33
	hash *= 0xff51afd7ed558ccd
	hash ^= hash >> 33
	return int(hash & uint64(chunks-1))
}

// distribute returns the items of each chunk, in order.
func distribute(items []v1alpha1.InventoryItem, chunks int) [][]v1alpha1.InventoryItem {
	parts := make([][]v1alpha1.InventoryItem, chunks)
	for _, item := range items {
		i := chunkOf(item, chunks)
		parts[i] = append(parts[i], item)
	}
	return parts
}

// typesOf returns the types of items, in order.
func typesOf(items []v1alpha1.InventoryItem) []v1alpha1.InventoryType {
	seen := map[v1alpha1.InventoryType]bool{}
	var types []v1alpha1.InventoryType
	for _, item := range items {
		t := v1alpha1.InventoryType{Group: item.Group, Version: item.Version, Kind: item.Kind}
		if !seen[t] {
			seen[t] = true
			types = append(types, t)
		}
	}
	slices.SortFunc(types, func(a, b v1alpha1.InventoryType) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
	return types
}

// maxNamespaces bounds how many namespaces the head names.
const maxNamespaces = 64

// namespacesOf returns the namespaces of items, in order; none if they are too many.
func namespacesOf(items []v1alpha1.InventoryItem) []string {
	seen := map[string]bool{}
	for _, item := range items {
		if item.Namespace != "" {
			seen[item.Namespace] = true
		}
	}
	if len(seen) > maxNamespaces {
		return nil
	}
	return slices.Sorted(maps.Keys(seen))
}

// sorted orders items as the planner does, by key.
func sorted(items []v1alpha1.InventoryItem) []v1alpha1.InventoryItem {
	slices.SortStableFunc(items, func(a, b v1alpha1.InventoryItem) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return items
}
