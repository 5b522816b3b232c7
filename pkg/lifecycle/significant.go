// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Significant lets pass events after which a pass over an object may do something
// else than the one before: it was created or deleted, or its spec, labels, annotations or
// our finalizer changed, or in deletion the finalizers of others. A change of the status
// is nothing of that kind; most of them are our own.
func Significant(finalizer string) predicate.Predicate {
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
		// They are no part of the generation, but a handler may use them.
		return true
	}
	// Finalizers of others matter to the deletion only, and that ours was added is no news.
	lost := slices.Contains(before.GetFinalizers(), finalizer) && !slices.Contains(after.GetFinalizers(), finalizer)
	deleting := !after.GetDeletionTimestamp().IsZero()
	return lost || deleting && !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}
