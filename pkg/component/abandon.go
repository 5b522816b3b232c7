// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// reasonAbandoned is the reason of the event that says what is left behind.
const reasonAbandoned = "Abandoned"

// abandonOf reports whether the deletion of the component leaves its dependents as
// they are, without even looking at them.
func abandonOf(c Component, reconcilerName string) (bool, error) {
	return flagOf(c, abandonAnnotation(reconcilerName))
}

func abandonAnnotation(reconcilerName string) string {
	return reconcilerName + "/" + v1alpha1.AnnotationAbandon
}

// abandon says what is left behind. It is for deletions that cannot succeed, so
// nothing here can fail, and no hooks run.
func (h *handler[T]) abandon(ctx context.Context, obj T) {
	inventory := obj.GetStatus().Inventory
	items, unread := inventory.Items, 0
	if snapshot, err := h.inventory.Open(ctx, h.inventoryComponent(obj), inventory); err == nil {
		items = snapshot.Inventory().Items
	} else {
		unread = inventory.Count() - len(items)
	}
	left := slices.DeleteFunc(slices.Clone(items), func(item reconciler.InventoryItem) bool {
		return item.Phase == v1alpha1.PhaseCompleted || item.Phase == v1alpha1.PhaseReleased
	})
	if len(left)+unread == 0 {
		return
	}
	note := "left behind " + verdict.ObjectCount(len(left)+unread)
	if inventory.Target != "" {
		note += fmt.Sprintf(" in the cluster %s", inventory.Target)
	}
	var names []string
	for _, item := range left[:min(len(left), verdict.MaxNamed)] {
		names = append(names, itemText(item))
	}
	if len(names) > 0 {
		note += ": " + strings.Join(names, ", ")
	}
	if more := len(left) + unread - len(names); more > 0 && len(names) > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	note += h.fencesText(obj, inventory.Target, items)
	events.Send(h.recorder, obj, 1, events.Event{
		Type: corev1.EventTypeWarning, Reason: reasonAbandoned, Action: string(deleting), Note: note,
	})
}

// unerasedText says how the Secrets go that the inventory was kept in.
func unerasedText(err error, reconcilerName string) string {
	return fmt.Sprintf("Secrets that hold the inventory stay (%v); take their finalizer %s/inventory away, or grant the operator the rights and restart it", err, reconcilerName)
}

// fencesText says where a fence is found that an attempt to delete a type or a
// namespace may have left behind: nobody is going to look for it any more, and it
// keeps everybody from creating anything there.
func (h *handler[T]) fencesText(obj T, target types.UID, items []reconciler.InventoryItem) string {
	fenced := slices.ContainsFunc(items, func(item reconciler.InventoryItem) bool {
		return item.Kind == "Namespace" && item.Group == "" || item.Kind == "CustomResourceDefinition"
	})
	if !h.settings.typeFence || !fenced {
		return ""
	}
	return fmt.Sprintf("; delete the ValidatingAdmissionPolicies there with the label %s, if there are any",
		reconciler.FenceSelector(h.settings.name, target, h.owner(obj)))
}

func itemText(item reconciler.InventoryItem) string {
	kind := schema.GroupKind{Group: item.Group, Kind: item.Kind}.String()
	if item.Namespace == "" {
		return kind + " " + item.Name
	}
	return kind + " " + item.Namespace + "/" + item.Name
}

// abandonHint is the way out of a deletion that cannot reach its target.
func (h *handler[T]) abandonHint(obj T) string {
	return fmt.Sprintf(`; to give up the %s that may be left there, set the annotation %s to "true"`,
		verdict.ObjectCount(obj.GetStatus().Inventory.Count()), abandonAnnotation(h.settings.name))
}
