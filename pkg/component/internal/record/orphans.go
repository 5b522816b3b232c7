// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package record

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
	"github.com/corbel-run/corbel/pkg/types"
)

// cleanupBase and cleanupLimit are the shortest and the longest delay between two attempts to
// find out whether a component with remaining Secrets still exists. If its type was removed
// from the server, that takes long.
const (
	cleanupBase  = 5 * time.Second
	cleanupLimit = 10 * time.Minute
)

// CleanUpOrphans removes the finalizers of orphaned inventory Secrets. It runs when the operator
// starts, until it has succeeded: after the forced removal of a component, a Secret of its
// inventory would block the deletion of the namespace. An operator that may not list Secrets
// everywhere works all the same.
func (k *Keeper) CleanUpOrphans(ctx context.Context) error {
	log, orphans := logf.FromContext(ctx), k.Store.Orphans()
	for attempt := 0; ; attempt++ {
		err := k.cleanUpOrphansOnce(ctx, orphans)
		switch {
		case err == nil, ctx.Err() != nil:
			return nil
		case apierrors.IsForbidden(err):
			log.V(1).Info("cannot look for Secrets of inventories that outlive their component", "error", err.Error())
			return nil
		}
		after := backoff.Delay(attempt, cleanupBase, cleanupLimit)
		switch {
		case !meta.IsNoMatchError(err):
			log.Error(err, "Secrets of inventories may outlive their components; will be tried again", "after", after)
		case attempt == 0: // until the definition is installed, there is nothing new to say
			log.Info("Secrets of inventories that outlive their component are looked for when the type is served", "type", k.Self.Kind.String())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(after):
		}
	}
}

// cleanUpOrphansOnce is one attempt of CleanUpOrphans.
func (k *Keeper) cleanUpOrphansOnce(ctx context.Context, orphans *inventory.Orphans) error {
	gvk := k.Self.Kind
	mapping, err := k.Mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return fmt.Errorf("find out whether the type %s has namespaces: %w", gvk, err)
	}
	kind := inventory.Kind{Group: gvk.Group, Kind: gvk.Kind, Namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace}
	return orphans.CleanUp(ctx, kind, k.stateOf)
}

// stateOf returns whether the very component still exists. It may exist although the
// watch of this process does not cover it.
func (k *Keeper) stateOf(ctx context.Context, c inventory.Component) (inventory.State, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(k.Self.Kind)
	switch err := k.Local.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, obj); {
	case types.IsGone(err, c.Name):
		return inventory.StateGone, nil
	case err != nil: // perhaps its path is not served just now, and it is there
		return "", err
	case obj.GetUID() != c.UID:
		return inventory.StateGone, nil
	case !obj.GetDeletionTimestamp().IsZero() && !controllerutil.ContainsFinalizer(obj, k.Self.Finalizer):
		return inventory.StateWithoutFinalizer, nil
	default:
		return inventory.StateElsewhere, nil
	}
}

// Forget removes the Secrets of a component that is gone, and drops everything about a component that belongs to another process.
func (k *Keeper) Forget(ctx context.Context, key client.ObjectKey) {
	k.erased.Delete(key)
	if err := k.Store.CleanUpComponent(ctx, key, k.stateOf); err != nil {
		k.RetryForget(ctx, key, err)
		return
	}
	k.retries.Delete(key)
}

// RetryForget logs why a component that is gone cannot be forgotten yet, and requests another attempt.
func (k *Keeper) RetryForget(ctx context.Context, key client.ObjectKey, err error) {
	streak, _ := k.retries.LoadOrStore(key, &backoff.Streak{})
	after := streak.(*backoff.Streak).Next(cleanupBase, cleanupLimit)
	logf.FromContext(ctx).Error(err, "will be tried again", "after", after)
	k.RequestFast(key, after)
}
