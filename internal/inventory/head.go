// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	validate "k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

const (
	// maxNumber bounds generations and revisions; greater ones come from forgery, and
	// would leave no room to count up.
	maxNumber = 1 << 50
	// maxTypes and maxNamespaces bound the size of the head.
	//
	// Unit: types
	// Limit: the types of the objects in one inventory that is kept in Secrets.
	maxTypes      = 2000
	maxNamespaces = 64
)

// checkHead returns the mistake of a head. A user with the right to write the status of a component
// can write anything there.
func checkHead(head *v1alpha1.InventoryChunks) error {
	switch n := len(head.Chunks); {
	case !isNumber(head.Generation) || !isNumber(head.Current) || !isNumber(head.Revision):
		return errors.New("its numbers are out of range")
	case head.Current > head.Generation:
		return errors.New("it names a set of Secrets that was never started")
	case head.Current == 0 && n > 0:
		return errors.New("it does not say where the items are")
	case head.Current > 0 && n == 0:
		return errors.New("it was lost, perhaps with the whole status")
	case n > maxChunks || n&(n-1) != 0:
		return fmt.Errorf("it names %d Secrets, which is no power of two up to %d", n, maxChunks)
	case len(head.Types) > maxTypes:
		return fmt.Errorf("it names %d types", len(head.Types))
	case len(head.Namespaces) > maxNamespaces:
		return fmt.Errorf("it names %d namespaces", len(head.Namespaces))
	case head.Namespace != "" && len(validation.IsDNS1123Label(head.Namespace)) > 0:
		return errors.New("it names a namespace that cannot exist")
	}
	for i, chunk := range head.Chunks {
		if chunk.Count < 0 || !isNumber(chunk.Revision) || chunk.Revision > head.Revision || (chunk.Hash == "") != (chunk.Count == 0) {
			return fmt.Errorf("chunk %d contradicts itself", i)
		}
	}
	return nil
}

func isNumber(n int64) bool { return n >= 0 && n <= maxNumber }

// withHead returns the inventory as the status holds it when it has a head.
func withHead(inventory v1alpha1.Inventory, head v1alpha1.InventoryChunks) v1alpha1.Inventory {
	inventory.Format = v1alpha1.InventoryFormat
	if head.Current > 0 {
		inventory.Format, inventory.Items = v1alpha1.InventoryFormatChunked, nil
	}
	inventory.Chunks = &head
	return inventory
}

// headOf returns a copy of the head, empty if there is none. Chunks are not shared.
func headOf(stored v1alpha1.Inventory) v1alpha1.InventoryChunks {
	if stored.Chunks == nil {
		return v1alpha1.InventoryChunks{}
	}
	return *stored.Chunks.DeepCopy()
}

// typesOf returns the types of items, in order.
func typesOf(items []v1alpha1.InventoryItem) []v1alpha1.InventoryType {
	seen := map[v1alpha1.InventoryType]bool{}
	for _, item := range items {
		seen[v1alpha1.InventoryType{Group: item.Group, Version: item.Version, Kind: item.Kind}] = true
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b v1alpha1.InventoryType) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Version, b.Version))
	})
}

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

// validItems leaves out items that name nothing that can exist on any server. They
// come from a forged inventory, and no answer could ever prove that the object is gone.
func validItems(items []v1alpha1.InventoryItem) []v1alpha1.InventoryItem {
	if !slices.ContainsFunc(items, isInvalid) {
		return items
	}
	return slices.DeleteFunc(slices.Clone(items), isInvalid)
}

func isInvalid(item v1alpha1.InventoryItem) bool {
	return item.Name == "" || len(validate.IsPathSegmentName(item.Name)) > 0 ||
		item.Namespace != "" && len(validation.IsDNS1123Label(item.Namespace)) > 0 ||
		item.Group != "" && len(validation.IsDNS1123Subdomain(item.Group)) > 0 ||
		len(validation.IsDNS1035Label(strings.ToLower(item.Version))) > 0 ||
		len(validation.IsDNS1035Label(strings.ToLower(item.Kind))) > 0
}
