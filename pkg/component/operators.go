// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
)

// operator is this operator as inventories name it.
func (h *handler[T]) operator(ctx context.Context) (*v1alpha1.InventoryOperator, error) {
	key, err := h.digestKey.Get(ctx)
	if err != nil {
		return nil, err
	}
	me := &v1alpha1.InventoryOperator{Key: digest.Hasher{Key: key}.ID(), Namespace: h.settings.operatorNamespace}
	if lock := h.settings.leaderLock; lock != nil {
		me.Lease = lock.Describe()
	}
	return me, nil
}
