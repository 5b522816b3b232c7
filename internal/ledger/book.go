// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Book is the record of one component in the course of one pass.
type Book struct {
	ledger    *Ledger
	component Component
	// stored is the record as the status has it, or is about to have it.
	stored v1alpha1.Inventory
	items  []v1alpha1.InventoryItem
	// secrets are those of the current set, by index. One without a name is lost.
	secrets []secret
	// strays are Secrets of other sets.
	strays []secret
	lost   []Loss
	// unreadable says what is wrong with the head as a whole.
	unreadable error
	// failed: a write failed; what the Secrets hold is not known.
	failed bool
}

// Loss is a part of the record that cannot be read any more.
type Loss struct {
	// Index is the chunk; -1 means all of them.
	Index int
	// Secret names where the items were.
	Secret string
	// Why says what is wrong with it.
	Why string
}

// String is a sentence about the loss.
func (l Loss) String() string {
	if l.Index < 0 {
		return "the head of the inventory: " + l.Why
	}
	return fmt.Sprintf("Secret %s: %s", l.Secret, l.Why)
}

// Inventory is the record with all its items, wherever they are kept. While there
// are losses it lacks items, and nothing may be done that relies on it.
func (b *Book) Inventory() v1alpha1.Inventory {
	whole := b.stored
	whole.Format, whole.Items, whole.Chunks = 0, b.items, nil
	if len(b.items) > 0 {
		whole.Format = v1alpha1.InventoryFormat
	}
	return whole
}

// Losses are the parts of the record that are to be rebuilt: the objects of all
// Types that belong to a lost part are to be given to Restore.
func (b *Book) Losses() []Loss { return b.lost }

// Types are the types of the objects in the record.
func (b *Book) Types() []v1alpha1.InventoryType {
	if b.stored.Chunks == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.stored.Chunks.Types), func(t v1alpha1.InventoryType) bool {
		return t.Kind == "" || t.Version == "" || strings.ContainsAny(t.Group+t.Version+t.Kind, "/ ")
	})
}

// Namespaces are the namespaces of the objects in the record; none if they are not known.
func (b *Book) Namespaces() []string {
	if b.stored.Chunks == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(b.stored.Chunks.Namespaces), func(name string) bool {
		return len(validation.IsDNS1123Label(name)) > 0
	})
}

// Restore takes over the objects that were found in place of the lost parts, and
// returns how many of them were missing. What belongs to a part that is not lost
// is left out: it is known that the record does not have it.
func (b *Book) Restore(found []v1alpha1.InventoryItem) int {
	missing := map[int]bool{}
	for _, loss := range b.lost {
		missing[loss.Index] = true
	}
	count := 0
	for _, item := range found {
		if missing[-1] || missing[chunkOf(item, len(b.secrets))] {
			b.items = append(b.items, item)
			count++
		}
	}
	b.items = sorted(b.items)
	b.lost = nil
	return count
}
