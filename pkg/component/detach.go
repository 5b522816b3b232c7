// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// detach strips our marks from everything that a component leaves behind on
// purpose, so that nobody takes it for the property of somebody who is gone. A
// component under the policy skip is left alone to the end.
func (h *handler[T]) detach(ctx context.Context, obj T) error {
	if lifecycle.PolicyFromContext(ctx) != lifecycle.DetachOnDelete || isEmpty(obj) {
		return nil
	}
	absent := h.loadReferences(ctx, obj)
	t, err := h.prepareDelete(ctx, obj, errors.Join(slices.Concat(absent.Failed, absent.Missing)...))
	if _, later := errors.AsType[*lifecycle.LaterError](err); later {
		return err
	}
	if err != nil {
		return h.blocked(obj, err.Error()+h.abandonHint(obj))
	}
	defer t.release()
	// What was lost of the record is looked for, but nothing more is recorded.
	record, err := h.openRecord(ctx, obj, func(context.Context) error { return nil }, t, policiesOf(obj, h.settings.policies), false)
	if err != nil {
		return err
	}
	inventory := record.inventory()
	inventory.Items = slices.Clone(inventory.Items)
	for i := range inventory.Items {
		inventory.Items[i].DeletePolicy = v1alpha1.DeletePolicyOrphan
	}
	outcome, err := t.engine.Delete(ctx, reconciler.DeleteRequest{Owner: h.owner(obj), Inventory: inventory, SkipHooks: true})
	switch {
	case err != nil:
		return err
	case !outcome.Done():
		return &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: verdict.WaitingMessage(outcome.Waiting, nil), Net: h.net(h.remembered(obj), outcome.Waiting)}}
	}
	return nil
}
