// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/ledger"
)

// releaseOrphans runs once, when the operator starts. A Secret of an inventory
// whose component was taken away by force would keep its namespace from going.
// An operator that may not list Secrets everywhere works all the same.
func (h *handler[T]) releaseOrphans(ctx context.Context) error {
	err := h.ledger.Orphans(ctx, h.kind.Group, h.kind.Kind, h.isGone)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("cannot look for Secrets of inventories that outlive their component", "error", err.Error())
	}
	return nil
}

// isGone tells whether the very component does not exist any more. It may be out of
// the reach of this process's own watch, and there nevertheless.
func (h *handler[T]) isGone(ctx context.Context, c ledger.Component) (bool, error) {
	obj := newComponent[T]()
	err := h.local.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, obj)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return err == nil && obj.GetUID() != c.UID, err
}
