// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// InventoryFormatChunked is the format of an inventory with its items in Secrets.
const InventoryFormatChunked = 2

// InventoryChunks is the head of an inventory with too many items for the status. The items are in a set of
// Secrets. The operator ignores a set that the head does not name.
type InventoryChunks struct {
	// Generation is the number of the last set of Secrets that was started.
	Generation int64 `json:"generation"`
	// Current is the set with the items. It is empty if they are in the status.
	// +optional
	Current int64 `json:"current,omitempty"`
	// Revision counts the changes of the inventory.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// Namespace is where the Secrets are if the component has no namespace.
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Types are the types of the items. They serve to find the objects of a lost Secret again.
	// +optional
	// +listType=atomic
	Types []InventoryType `json:"types,omitempty"`
	// Namespaces are the namespaces of the items, unless they are many.
	// +optional
	// +listType=atomic
	Namespaces []string `json:"namespaces,omitempty"`
	// Chunks are the Secrets, in the order of their index.
	// +optional
	// +listType=atomic
	Chunks []InventoryChunk `json:"chunks,omitempty"`
}

// InventoryType is a type of dependent objects.
type InventoryType struct {
	// +optional
	Group   string `json:"group,omitempty"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// InventoryChunk describes the content of one Secret.
type InventoryChunk struct {
	// Count is the number of items.
	// +optional
	// +kubebuilder:validation:Maximum=2147483647
	Count int32 `json:"count,omitempty"`
	// Revision is the revision in which the items were written last; it names
	// the entry in the Secret.
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// Hash is the SHA-256 of the items, in hexadecimal digits.
	// +optional
	Hash string `json:"hash,omitempty"`
}

// IsEmpty reports whether the record names no objects, here or in Secrets.
func (i *Inventory) IsEmpty() bool { return i.Count() == 0 && !i.IsLost() }

// Lose makes it durable, with the next write of the status, that the whole record was lost. The head names a set of Secrets and
// none of its Secrets, so that every version looks for the objects by their ownership label and annotation.
func (i *Inventory) Lose() {
	*i = Inventory{Format: InventoryFormatChunked, Chunks: &InventoryChunks{Generation: 1, Current: 1}}
}

// IsLost reports whether the whole record was lost and the objects are not found yet.
func (i *Inventory) IsLost() bool {
	return i.Chunks != nil && i.Chunks.Current != 0 && len(i.Chunks.Chunks) == 0
}

// Count is the number of objects that the record names, here or in Secrets.
func (i *Inventory) Count() int {
	count := len(i.Items)
	if i.Chunks == nil {
		return count
	}
	for _, chunk := range i.Chunks.Chunks {
		count += int(max(chunk.Count, 0))
	}
	return count
}
