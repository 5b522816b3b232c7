// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Every saved inventory has a format.
func TestAnEmptyInventoryHasAFormat(t *testing.T) {
	if got := (&Record{}).signed(v1alpha1.Inventory{}); got.Format != v1alpha1.InventoryFormat || got.Operator != nil {
		t.Errorf("%+v", got)
	}
}
