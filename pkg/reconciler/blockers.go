// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// DeletionBlockers returns the instances that block the deletion of the inventory: instances of the
// component's own types and of the additional managed types that the inventory does not contain.
// They would be lost together with their type, or with the controller of their type. Instances that
// the inventory records as orphaned, or as to be orphaned, block nothing; neither do instances of a
// type that is itself to be orphaned. Patterns of types cover the types that the server serves at
// this moment. For an owner in a namespace, the instances in that namespace are named, and the rest
// is counted. If no blocker is returned, nothing blocks the deletion.
//
// The answer holds for the moment; the executor checks again right before it deletes a type.
func (r *Reconciler) DeletionBlockers(ctx context.Context, request DeleteRequest) ([]report.Blocker, error) {
	in, err := r.deleteInput(ctx, request)
	if err != nil {
		return nil, err
	}
	known := ownsRecorded(in.Recorded)
	var blockers []report.Blocker
	var errs []error
	collect := func(dependent string, key plan.Key, message string, obstacles []report.AwaitedObject, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: look for foreign instances: %w", dependent, err))
		}
		if message != "" {
			blockers = append(blockers, report.Blocker{Dependent: dependent, Key: key, Message: message, Awaited: obstacles})
		}
	}
	for _, item := range in.Recorded {
		if len(item.Defines) == 0 || policy.OrphansOnDelete(item.DeletePolicy) {
			continue // a type that stays keeps its instances
		}
		if item.UID == "" && !item.Inherited || item.Phase == vocabulary.PhaseReleased {
			continue // the type is not known to be ours, so it will not be deleted without another check
		}
		key := plan.KeyOf(item)
		message, obstacles, err := r.executor.ForeignInstancesOf(ctx, in.Owner, key, known)
		collect(key.String(), key, message, obstacles, err)
	}
	for _, pattern := range request.ManagedTypes {
		message, obstacles, err := r.executor.ForeignInstances(ctx, in.Owner, pattern, known)
		collect(titleOf(pattern), plan.Key{}, message, obstacles, err)
	}
	return blockers, errors.Join(errs...)
}

// titleOf names the types of a pattern in messages.
func titleOf(pattern v1alpha1.TypeInfo) string {
	if pattern.Kind == "*" {
		return "the types of group " + strconv.Quote(pattern.Group)
	}
	return "type " + schema.GroupKind{Group: pattern.Group, Kind: pattern.Kind}.String()
}

// ownsRecorded returns a function that reports whether an instance is in the inventory, as ours or
// as orphaned.
func ownsRecorded(items []v1alpha1.InventoryItem) execute.Owns {
	ours := make(map[plan.Key]types.UID, len(items))
	kept := map[types.UID]bool{}
	for _, item := range items {
		if item.Phase == vocabulary.PhaseReleased {
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

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// awaitedType is a type that the server does not serve.
func awaitedType(gvk schema.GroupVersionKind) report.AwaitedObject {
	return report.AwaitedObject{Type: gvk.GroupVersion().WithResource(""), Kind: gvk.Kind}
}

// awaited returns the objects of other owners that the plan waits for, and the ignored
// objects, which are created once they are gone.
func (c *call) awaited(p plan.Plan) []report.AwaitedObject {
	var all []report.AwaitedObject
	add := func(more ...report.AwaitedObject) {
		for _, one := range more {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	addObject := func(key plan.Key, deletionOnly bool) {
		if resource, known := c.in.resourceOf(c.typeOf(key)); known {
			add(report.AwaitedObject{
				Type: resource.GVR, Namespace: key.Namespace, Name: key.Name, ResourceVersion: c.in.Live[key].ResourceVersion, DeletionOnly: deletionOnly,
			})
		}
	}
	for _, key := range p.Ignored {
		addObject(key, true)
	}
	for _, wait := range p.Waiting {
		key := wait.Key
		switch wait.Reason {
		case report.WaitOwner:
			addObject(key, false)
		case report.WaitNamespaceGone:
			of := plan.Key{Kind: "Namespace", Name: key.Namespace}
			add(report.AwaitedObject{Type: namespaces, Name: of.Name, ResourceVersion: c.in.Live[of].ResourceVersion})
		case report.WaitType:
			if !c.defines(key.GroupKind()) {
				add(awaitedType(c.typeOf(key)))
			}
		case report.WaitBlocked:
			add(c.in.Failed[key].BlockingTypes...)
		}
	}
	return all
}

// typeOf returns the type of an object in the version in which it is read.
func (c *call) typeOf(key plan.Key) schema.GroupVersionKind {
	for i := range c.in.Desired {
		if c.in.Desired[i].Key == key {
			return key.GroupKind().WithVersion(c.in.Desired[i].Version)
		}
	}
	for _, item := range c.in.Recorded {
		if plan.KeyOf(item) == key {
			return key.GroupKind().WithVersion(item.Version)
		}
	}
	return schema.GroupVersionKind{}
}

// defines reports whether one of the desired objects defines the type. Such a type needs no
// watch of all definitions.
func (c *call) defines(gk schema.GroupKind) bool {
	return slices.ContainsFunc(c.in.Desired, func(d plan.Desired) bool {
		return plan.Covers(d.Defines, gk)
	})
}
