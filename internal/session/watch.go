// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// WatchNamespaces makes a controller reconcile the objects of a kind in a namespace when
// the annotation <name>/management-policy of the namespace is added, changed or removed.
// The controller must watch the metadata of that kind, as with builder.OnlyMetadata.
func WatchNamespaces(mgr ctrl.Manager, blder *ctrl.Builder, kind schema.GroupVersionKind, name string) {
	annotation := policyAnnotation(name)
	blder.Watches(namespaceMetadata(), handler.EnqueueRequestsFromMapFunc(inNamespace(mgr.GetClient(), kind, annotation)),
		builder.OnlyMetadata, builder.WithPredicates(annotationChanged(annotation)))
}

// inNamespace finds the objects for which the annotation of their namespace counts.
func inNamespace(reader client.Reader, kind schema.GroupVersionKind, annotation string) handler.MapFunc {
	return func(ctx context.Context, namespace client.Object) []reconcile.Request {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := reader.List(ctx, list, client.InNamespace(namespace.GetName())); err != nil {
			// The objects are requeued at their requeue interval anyway.
			logf.FromContext(ctx).Error(err, "cannot list the objects of a namespace whose management policy changed", "namespace", namespace.GetName())
			return nil
		}
		var requests []reconcile.Request
		for i := range list.Items {
			if _, own := list.Items[i].Annotations[annotation]; !own {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
		return requests
	}
}

// annotationChanged lets updates pass that add, change or remove an annotation. What a
// namespace has from the beginning concerns no object that is not reconciled anyway.
func annotationChanged(annotation string) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, had := e.ObjectOld.GetAnnotations()[annotation]
			after, has := e.ObjectNew.GetAnnotations()[annotation]
			return before != after || had != has
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Significant lets events pass after which a reconcile of an object may do something else than the reconcile before:
//   - The object was created or deleted.
//   - Its spec, its labels or its annotations changed, but for the annotations to ignore.
//   - Our finalizer was taken away, or another one was added beside it: another operator may have claimed the object.
//   - Our finalizer is not there, and another one was taken away.
//   - The finalizers of an object in deletion changed.
//
// A change of the status does not pass; most of these changes are our own.
func Significant(finalizer string, ignored ...string) predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			return changed(e.ObjectOld, e.ObjectNew, finalizer, ignored)
		},
	}
}

func changed(before, after client.Object, finalizer string, ignored []string) bool {
	switch {
	case before.GetUID() != after.GetUID(), before.GetGeneration() != after.GetGeneration():
		return true
	case before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero():
		return true
	case !maps.Equal(without(before.GetAnnotations(), ignored), without(after.GetAnnotations(), ignored)):
		return true
	case !maps.Equal(before.GetLabels(), after.GetLabels()):
		// They are no part of the generation, but a handler may use them.
		return true
	}
	// While our finalizer is there, the loss of others matters to the deletion only, and we know of the addition of our own.
	lost := !slices.Contains(after.GetFinalizers(), finalizer) && lacks(after, before)
	gained := slices.Contains(before.GetFinalizers(), finalizer) && lacks(before, after)
	deleting := !after.GetDeletionTimestamp().IsZero()
	return lost || gained || deleting && !slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// lacks reports whether an object lacks a finalizer of another one.
func lacks(object, other client.Object) bool {
	return slices.ContainsFunc(other.GetFinalizers(), func(f string) bool { return !slices.Contains(object.GetFinalizers(), f) })
}

// without returns annotations without those to ignore.
func without(annotations map[string]string, ignored []string) map[string]string {
	if len(ignored) == 0 {
		return annotations
	}
	annotations = maps.Clone(annotations)
	for _, key := range ignored {
		delete(annotations, key)
	}
	return annotations
}

// defaultConcurrency is how many objects are reconciled at the same time, unless the options or the
// manager set another number.
const defaultConcurrency = 5

// ConcurrencyOf returns how many objects a controller reconciles at the same time, as its options and those of its manager say; 0 leaves
// it to the manager.
func ConcurrencyOf(chosen int, managers config.Controller) int {
	if managers.MaxConcurrentReconciles == 0 && len(managers.GroupKindConcurrency) == 0 {
		return cmp.Or(chosen, defaultConcurrency)
	}
	return chosen
}
