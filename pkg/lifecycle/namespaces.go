// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// WatchNamespaces makes a controller reconcile the objects of a kind in a namespace when
// the annotation <name>/management-policy of the namespace is added, changed or removed.
// The controller must watch the metadata of that kind, as with builder.OnlyMetadata.
// SetupWithManager calls it.
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
			// The objects come by themselves at their requeue interval.
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

// annotationChanged lets pass updates that add, change or remove an annotation. What a
// namespace has from the beginning concerns no object that is not reconciled anyway.
func annotationChanged(annotation string) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			if e.ObjectOld == nil || e.ObjectNew == nil {
				return false
			}
			before, had := e.ObjectOld.GetAnnotations()[annotation]
			after, has := e.ObjectNew.GetAnnotations()[annotation]
			return before != after || had != has
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}
