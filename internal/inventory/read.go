// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Read returns the inventory of a component for a program other than its operator: Read writes
// nothing. The status of the component has the head of the inventory, and the name is the name of
// the reconciler. Lost items are missing in the inventory, and named by the losses; an error means
// that the inventory is unknown.
func Read(ctx context.Context, reader client.Reader, name string, c Component, stored v1alpha1.Inventory) (v1alpha1.Inventory, []Loss, error) {
	if stored.Format > v1alpha1.InventoryFormat {
		return v1alpha1.Inventory{}, nil, &FormatError{Format: stored.Format}
	}
	s := &Snapshot{store: &Store{options: Options{Name: name}, reader: reader}, component: c, stored: stored, items: validItems(stored.Items)}
	if stored.Chunks == nil {
		return s.Inventory(), nil, nil
	}
	if err := checkHead(stored.Chunks); err != nil {
		return s.Inventory(), []Loss{{Index: -1, Why: err.Error()}}, nil
	}
	if stored.Chunks.Current > 0 {
		// Each Secret is read by its name: that needs fewer rights than a list.
		if err := s.readChunks(ctx, nil); err != nil {
			return v1alpha1.Inventory{}, nil, err
		}
	}
	return s.Inventory(), s.lost, nil
}
