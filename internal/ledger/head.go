// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// maxNumber bounds generations and revisions; greater ones come from forgery, and
// would leave no room to count up.
const maxNumber = 1 << 50

// checkHead tells what is wrong with a head. Everybody who may write the status of
// a component may write anything there.
func checkHead(head *v1alpha1.InventoryChunks) error {
	switch n := len(head.Chunks); {
	case !isNumber(head.Generation) || !isNumber(head.Current) || !isNumber(head.Revision):
		return errors.New("its numbers are out of range")
	case head.Current > head.Generation:
		return errors.New("it names a set of Secrets that was not begun")
	case head.Current == 0 && n > 0, head.Current > 0 && n == 0:
		return errors.New("it does not say where the items are")
	case n > maxChunks || n&(n-1) != 0:
		return fmt.Errorf("it names %d Secrets, which is no power of two up to %d", n, maxChunks)
	case len(head.Types) > maxTypes:
		return fmt.Errorf("it names %d types", len(head.Types))
	}
	if len(head.Namespaces) > maxNamespaces {
		return fmt.Errorf("it names %d namespaces", len(head.Namespaces))
	}
	if head.Namespace != "" && len(validation.IsDNS1123Label(head.Namespace)) > 0 {
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

// withHead returns the record as the status holds it when it has a head.
func withHead(record v1alpha1.Inventory, head v1alpha1.InventoryChunks) v1alpha1.Inventory {
	record.Format = v1alpha1.InventoryFormatChunked
	if head.Current > 0 {
		record.Items = nil
	}
	record.Chunks = &head
	return record
}

// headOf returns a copy of the head, empty if there is none. Chunks are not shared.
func headOf(stored v1alpha1.Inventory) v1alpha1.InventoryChunks {
	if stored.Chunks == nil {
		return v1alpha1.InventoryChunks{}
	}
	return *stored.Chunks.DeepCopy()
}
