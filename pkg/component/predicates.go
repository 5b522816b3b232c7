// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// worthReconciling lets pass what a component's dependents may follow from. A
// change of the status is nothing of that kind; most of them are our own.
func worthReconciling(finalizer string) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld != nil && e.ObjectNew != nil && changed(e.ObjectOld, e.ObjectNew, finalizer)
		},
	}
}

func changed(before, after client.Object, finalizer string) bool {
	switch {
	case before.GetUID() != after.GetUID(), before.GetGeneration() != after.GetGeneration():
		return true
	case before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero():
		return true
	case !maps.Equal(before.GetAnnotations(), after.GetAnnotations()):
		return true
	case !maps.Equal(before.GetLabels(), after.GetLabels()):
		// They are no part of the digest, but a generator may use them.
		return true
	}
	// Finalizers of others matter to the deletion only, and that ours was added is no news.
	lost := slices.Contains(before.GetFinalizers(), finalizer) && !slices.Contains(after.GetFinalizers(), finalizer)
	deleting := !after.GetDeletionTimestamp().IsZero()
	return lost || deleting && !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// inShard lets pass what the selector selects, and what it selected before: that is
// to be forgotten.
func inShard(selector labels.Selector) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return selects(selector, e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return selects(selector, e.ObjectOld) || selects(selector, e.ObjectNew)
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return selects(selector, e.Object) },
	}
}

// selects tells whether an object is selected; by nil, everything is.
func selects(selector labels.Selector, object client.Object) bool {
	return selector == nil || object != nil && selector.Matches(labels.Set(object.GetLabels()))
}
