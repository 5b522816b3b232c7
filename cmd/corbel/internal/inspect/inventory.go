// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/inventory"
)

// LostError means that a part of the inventory of a component cannot be read. What can be read of it is used.
type LostError struct {
	// Component names the component.
	Component string
	// Parts says what is lost, and why.
	Parts []string
}

// Error says what is lost.
func (e *LostError) Error() string {
	return fmt.Sprintf("a part of the inventory of %s is lost: %s; its operator finds the objects again by their labels", e.Component, strings.Join(e.Parts, "; "))
}

// Inventory returns the inventory of a component, from its status or from the Secrets beside it. A LostError comes with
// what can be read.
func (r *Reader) Inventory(ctx context.Context, c Component) (v1alpha1.Inventory, error) {
	stored := c.Status.Inventory
	if stored.Chunks != nil && c.Reconciler == "" {
		return v1alpha1.Inventory{}, fmt.Errorf("the inventory of %s is in Secrets, and the name of its reconciler, by which they are found, is unknown", c)
	}
	apiVersion, kind := c.Type.ToAPIVersionAndKind()
	whole, losses, err := inventory.Read(ctx, r.Client, c.Reconciler, inventory.Component{
		APIVersion: apiVersion, Kind: kind, Namespace: c.Object.GetNamespace(), Name: c.Object.GetName(), UID: c.Object.GetUID(),
	}, stored)
	if err != nil {
		return whole, fmt.Errorf("read the inventory of %s: %w", c, err)
	}
	if len(losses) == 0 {
		return whole, c.Mistake
	}
	lost := &LostError{Component: c.String()}
	for _, loss := range losses {
		lost.Parts = append(lost.Parts, loss.String())
	}
	return whole, lost
}

// IsLost reports whether an error is about a part of an inventory, so that the rest of it can be used.
func IsLost(err error) bool {
	_, ok := errors.AsType[*LostError](err)
	return ok
}

// KindOf returns the type of an item.
func KindOf(item v1alpha1.InventoryItem) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: item.Group, Version: item.Version, Kind: item.Kind}
}

func keyOf(item v1alpha1.InventoryItem) client.ObjectKey {
	return client.ObjectKey{Namespace: item.Namespace, Name: item.Name}
}
