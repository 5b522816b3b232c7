// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/status"
)

// view is the state of a Shop and its dependents at a moment.
type view struct {
	shop       *shopv1alpha1.Shop // nil if it does not exist
	dependents []dependent
}

// dependent is a dependent object, as the Shop's inventory and the server show it.
type dependent struct {
	stage      stage
	kind, name string
	state, why string
	object     *unstructured.Unstructured // nil if it does not exist
}

// readView reads a Shop and every object of its inventory.
func readView(ctx context.Context, c client.Client, key client.ObjectKey) (view, error) {
	shop := &shopv1alpha1.Shop{}
	if err := c.Get(ctx, key, shop); err != nil {
		return view{}, client.IgnoreNotFound(err)
	}
	v := view{shop: shop}
	for _, item := range shop.Status.Inventory.Items {
		d := dependent{stage: stageOf(item), kind: item.Kind, name: item.Name}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: item.Group, Version: item.Version, Kind: item.Kind})
		err := c.Get(ctx, client.ObjectKey{Namespace: item.Namespace, Name: item.Name}, object)
		switch {
		case err == nil:
			d.object = object
		case !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err):
			return view{}, err
		}
		d.state, d.why = stateOf(item, d.object)
		v.dependents = append(v.dependents, d)
	}
	return v, nil
}

// stage is when a dependent is applied: stages follow each other in this order, and
// have a title.
type stage struct {
	order int
	title string
}

// farOut is further out than the waves that people give to objects: there the hooks
// of charts are, before and after everything else. Those for the deletion have no wave.
const farOut = 10000

func stageOf(item v1alpha1.InventoryItem) stage {
	order := int(item.ApplyOrder)
	switch {
	case item.RunOn == "pre-delete":
		return stage{math.MinInt, "hooks before"}
	case item.RunOn == "post-delete":
		return stage{math.MaxInt, "hooks after"}
	case order < -farOut:
		return stage{order, "hooks before"}
	case order > farOut:
		return stage{order, "hooks after"}
	default:
		return stage{order, fmt.Sprintf("wave %d", order)}
	}
}

// stateGone is the state of what was there.
const stateGone = "gone"

// stateOf says how a dependent object is, and why.
func stateOf(item v1alpha1.InventoryItem, object *unstructured.Unstructured) (state, why string) {
	switch {
	case item.Phase == v1alpha1.PhaseCompleted, item.Phase == v1alpha1.PhaseCompleting && object == nil:
		return "Completed", "did its work and was removed"
	case object == nil && item.UID == "":
		return "Pending", "not created yet"
	case object == nil:
		return stateGone, ""
	case object.GetDeletionTimestamp() != nil:
		return "Deleting", ""
	}
	analyzed := status.Analyze(object, status.Options{})
	if analyzed.Readiness == status.Ready {
		return analyzed.Readiness.String(), size(object)
	}
	return analyzed.Readiness.String(), analyzed.Message
}

// size says how large a ready workload is; other objects have no size.
func size(object *unstructured.Unstructured) string {
	replicas, found, err := unstructured.NestedInt64(object.Object, "status", "readyReplicas")
	if err != nil || !found {
		return ""
	}
	return plural(replicas, "replica")
}

// find returns the live object of a dependent, or nil.
func (v view) find(kind, name string) *unstructured.Unstructured {
	for _, d := range v.dependents {
		if d.kind == kind && d.name == name {
			return d.object
		}
	}
	return nil
}

// ready returns nil if the Shop is Ready as its user wants it now.
func (v view) ready() error {
	if v.shop == nil {
		return errors.New("the Shop does not exist")
	}
	s := &v.shop.Status
	if s.IsReady() && s.ObservedGeneration == v.shop.Generation {
		return nil
	}
	state, reason, message := s.GetState()
	return fmt.Errorf("the Shop is %s (%s: %s); generation %d, observed %d", state, reason, message, v.shop.Generation, s.ObservedGeneration)
}
