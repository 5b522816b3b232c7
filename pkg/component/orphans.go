// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/pkg/cluster"
)

// releaseOrphans runs when the operator starts, until it has succeeded. A Secret of an
// inventory whose component was taken away by force would keep its namespace from going.
// An operator that may not list Secrets everywhere works all the same.
func (h *handler[T]) releaseOrphans(ctx context.Context) error {
	log, orphans := logf.FromContext(ctx), h.inventory.Orphans()
	for attempt := 0; ; attempt++ {
		err := h.releaseThose(ctx, orphans)
		switch {
		case err == nil, ctx.Err() != nil:
			return nil
		case apierrors.IsForbidden(err):
			log.V(1).Info("cannot look for Secrets of inventories that outlive their component", "error", err.Error())
			return nil
		}
		after := backoff.Delay(attempt, leftBase, leftLimit)
		switch {
		case !meta.IsNoMatchError(err):
			log.Error(err, "Secrets of inventories may outlive their components; will be tried again", "after", after)
		case attempt == 0: // until somebody installs the definition, there is nothing new to say
			log.Info("Secrets of inventories that outlive their component are looked for when the type is served", "type", h.kind.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(after):
		}
	}
}

// releaseThose is one attempt.
func (h *handler[T]) releaseThose(ctx context.Context, orphans *inventory.Orphans) error {
	mapping, err := h.mapper.RESTMapping(h.kind.GroupKind(), h.kind.Version)
	if err != nil {
		return fmt.Errorf("find out whether the type %s has namespaces: %w", h.kind, err)
	}
	kind := inventory.Kind{Group: h.kind.Group, Kind: h.kind.Kind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	return orphans.Release(ctx, kind, h.componentState)
}

// componentState returns what has become of the very component. It may be out of the reach of
// this process's own watch, and there nevertheless.
func (h *handler[T]) componentState(ctx context.Context, c inventory.Component) (inventory.State, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(h.kind)
	switch err := h.local.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, obj); {
	case cluster.IsGone(err, c.Name):
		return inventory.StateGone, nil
	case err != nil: // perhaps its path is not served just now, and it is there
		return "", err
	case obj.GetUID() != c.UID:
		return inventory.StateGone, nil
	case !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, h.settings.finalizer):
		return inventory.StateReleased, nil
	default:
		return inventory.StateElsewhere, nil
	}
}

// Between these delays it is tried again to find out what has become of a component that left
// Secrets behind. If its type was taken from the server, nobody can tell for long.
const (
	leftBase  = 5 * time.Second
	leftLimit = 10 * time.Minute
)

// leave lets go of the inventory of a component that is gone, or no concern of ours any more.
func (h *handler[T]) leave(ctx context.Context, key client.ObjectKey) {
	if err := h.inventory.ReleaseComponent(ctx, key, h.componentState); err != nil {
		h.leaveLater(ctx, key, err)
		return
	}
	h.left.Reset(key)
}

func (h *handler[T]) leaveLater(ctx context.Context, key client.ObjectKey, err error) {
	after := h.left.Next(key)
	logf.FromContext(ctx).Error(err, "will be tried again", "after", after)
	h.triggers.RequeueAfter(key, after)
}
