// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// DeletionBlockers returns what blocks the deletion of everything in the
// inventory: the instances of the component's own types, and of the additional
// managed types, that the inventory does not contain. They would be lost together
// with their type, or with what looks after them. Instances that are to be left
// behind, or were, as the inventory says, block nothing; and nothing blocks a type
// that is itself to be left behind. Patterns of types cover what the server serves
// at this moment. An owner in a namespace is told the names of instances in that
// namespace, and of the others how many there are. Nothing is blocked if none is returned.
//
// The answer holds for the moment; the executor checks again right before it
// deletes a type.
func (r *Reconciler) DeletionBlockers(ctx context.Context, request DeleteRequest) ([]Blocker, error) {
	in, err := r.deleteInput(ctx, request)
	if err != nil {
		return nil, err
	}
	known := recorded(in.Recorded)
	var blockers []Blocker
	var errs []error
	collect := func(dependent, message string, obstacles []plan.BlockingType, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: look for foreign instances: %w", dependent, err))
		}
		if message != "" {
			blockers = append(blockers, Blocker{Dependent: dependent, Message: message, Foreign: inTheWay(obstacles)})
		}
	}
	for _, item := range in.Recorded {
		if len(item.Defines) == 0 || staysBehind(item) {
			continue // a type that stays keeps its instances
		}
		if item.UID == "" || item.Phase == v1alpha1.PhaseReleased {
			continue // the type is not known to be ours, so it will not be deleted without another check
		}
		key := plan.KeyOf(item)
		message, obstacles, err := r.executor.ForeignInstancesOf(ctx, in.Owner, key, known)
		collect(key.String(), message, obstacles, err)
	}
	for _, pattern := range request.ManagedTypes {
		message, obstacles, err := r.executor.ForeignInstances(ctx, in.Owner, pattern, known)
		collect("type "+schema.GroupKind{Group: pattern.Group, Kind: pattern.Kind}.String(), message, obstacles, err)
	}
	return blockers, errors.Join(errs...)
}

// recorded tells of an instance whether it is in the inventory as ours, or as one
// that was left behind.
func recorded(items []v1alpha1.InventoryItem) execute.Owns {
	ours := make(map[plan.Key]types.UID, len(items))
	kept := map[types.UID]bool{}
	for _, item := range items {
		if item.Phase == v1alpha1.PhaseReleased {
			continue
		}
		ours[plan.KeyOf(item)] = item.UID
		for _, uid := range item.Kept {
			kept[uid] = true
		}
	}
	return func(key plan.Key, uid types.UID) bool {
		recorded, ok := ours[key]
		// Without a uid the answer to our write was lost.
		return ok && (recorded == "" || recorded == uid) || kept[uid]
	}
}

// staysBehind tells whether the deletion of the component leaves an object alone.
func staysBehind(item v1alpha1.InventoryItem) bool {
	return item.DeletePolicy == v1alpha1.DeletePolicyOrphan || item.DeletePolicy == v1alpha1.DeletePolicyOrphanOnDelete
}
