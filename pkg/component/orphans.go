// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/ledger"
	"github.com/corbel-run/corbel/pkg/cluster"
)

// releaseOrphans runs once, when the operator starts. A Secret of an inventory
// whose component was taken away by force would keep its namespace from going.
// An operator that may not list Secrets everywhere works all the same.
func (h *handler[T]) releaseOrphans(ctx context.Context) error {
	err := h.ledger.Orphans(ctx, h.kind.Group, h.kind.Kind, h.fateOf)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("cannot look for Secrets of inventories that outlive their component", "error", err.Error())
	}
	return nil
}

// fateOf tells what has become of the very component. It may be out of the reach of
// this process's own watch, and there nevertheless.
func (h *handler[T]) fateOf(ctx context.Context, c ledger.Component) (ledger.Fate, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(h.kind)
	switch err := h.local.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, obj); {
	case cluster.IsGone(err, c.Name):
		return ledger.Vanished, nil
	case err != nil: // perhaps its path is not served just now, and it is there
		return "", err
	case obj.GetUID() != c.UID:
		return ledger.Vanished, nil
	case !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, h.settings.finalizer):
		return ledger.Dying, nil
	default:
		return ledger.Elsewhere, nil
	}
}

// Between these it is tried again to find out what has become of a component that left
// Secrets behind. If its type was taken from the server, nobody can tell for long.
const (
	leftBase  = 5 * time.Second
	leftLimit = 10 * time.Minute
)

// leave lets go of the inventory of a component that is gone, or no concern of ours any more.
func (h *handler[T]) leave(ctx context.Context, key client.ObjectKey) {
	if err := h.ledger.Left(ctx, key, h.fateOf); err != nil {
		h.leaveLater(ctx, key, err)
		return
	}
	h.left.Forget(key)
}

func (h *handler[T]) leaveLater(ctx context.Context, key client.ObjectKey, err error) {
	after := h.left.Next(key)
	logf.FromContext(ctx).Error(err, "will be tried again", "after", after)
	h.later(key, after)
}
