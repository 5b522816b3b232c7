// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// operator is this operator as inventories name it.
func (h *handler) operator(ctx context.Context) (*v1alpha1.InventoryOperator, error) {
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

// claimText says which other operator has claimed a component; empty if none has. The status names the operator, and a finalizer
// shows that it has not left: that of its name, or the very one that this operator has by an option.
func (s *settings) claimText(obj client.Object, reconciler string) string {
	if reconciler == "" || reconciler == s.name || reconciler == s.formerName(obj) {
		return ""
	}
	finalizer := reconciler
	if !slices.Contains(obj.GetFinalizers(), finalizer) {
		finalizer = s.finalizer
	}
	if finalizer == s.name || !slices.Contains(obj.GetFinalizers(), finalizer) {
		return ""
	}
	return fmt.Sprintf("operator %s has claimed it, as status.reconciler and the finalizer %s say; operator %s leaves it alone until that finalizer is gone, or the annotation %s/%s: %s says that it takes the place of that operator",
		reconciler, finalizer, s.name, s.name, vocabulary.AnnotationAdoptOperator, reconciler)
}

// isOther reports whether a name can be that of another operator.
func (s *settings) isOther(name string) bool {
	return name != s.name && len(validation.IsDNS1123Subdomain(name)) == 0
}

// formerName is the name of the operator whose place this one takes; empty if there is none.
func (s *settings) formerName(obj client.Object) string {
	former, annotated := obj.GetAnnotations()[s.name+"/"+vocabulary.AnnotationAdoptOperator]
	if !annotated {
		former = s.adoptOperator
	}
	if !s.isOther(former) {
		return ""
	}
	return former
}

// former is the name of that operator as long as the status says that the component is its own.
func (h *handler) former(obj Component) string {
	if former := h.settings.formerName(obj); former == obj.GetStatus().Reconciler {
		return former
	}
	return ""
}

// formerFinalizer is the finalizer of that operator, unless both have the same one by an option.
func (h *handler) formerFinalizer(obj Component) string {
	if former := h.former(obj); former != h.settings.finalizer {
		return former
	}
	return ""
}

// storeOf returns where the inventory is kept: with Secrets of that operator, as long as the component is its own.
func (h *handler) storeOf(obj Component) *inventory.Store {
	if former := h.former(obj); former != "" {
		return h.inventory.Of(former)
	}
	return h.inventory
}

// takeOver makes the component our own, in one write with the inventory, which moves to Secrets of ours. A deletion ends under the
// name of the former operator: its finalizer cannot be replaced any more.
func (h *handler) takeOver(ctx context.Context, obj Component, stored *storedInventory) error {
	status, former := obj.GetStatus(), h.former(obj)
	if former == "" || !obj.GetDeletionTimestamp().IsZero() {
		return nil
	}
	whole := stored.inventory()
	if status.Inventory.Chunks != nil {
		var lost v1alpha1.Inventory
		lost.Lose()
		ours, err := h.inventory.Open(ctx, h.inventoryComponent(obj), lost)
		if err != nil {
			return err
		}
		ours.Restore(whole.Items)
		stored.snapshot = ours
	}
	status.Reconciler = h.settings.name
	if err := stored.save(ctx, whole); err != nil {
		status.Reconciler = former
		return err
	}
	return nil
}

// eraseFormer removes the Secrets that the former operator kept, once the component is our own, and once in the life of a process.
func (h *handler) eraseFormer(ctx context.Context, obj Component) error {
	former, known, status := h.settings.formerName(obj), h.remembered(obj), obj.GetStatus()
	if former == "" || former == status.Reconciler || known.formerErased || status.Inventory.Chunks == nil {
		return nil
	}
	left := v1alpha1.Inventory{Chunks: &v1alpha1.InventoryChunks{Namespace: status.Inventory.Chunks.Namespace}}
	err := h.inventory.Of(former).Erase(ctx, h.inventoryComponent(obj), left)
	if known.formerErased = err == nil; err != nil {
		logf.FromContext(ctx).Error(err, "Secrets of the former operator stay for now", "operator", former)
	}
	return err
}
