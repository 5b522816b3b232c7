// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// A client asks the server to orphan dependents with the propagation policy Orphan, as kubectl delete --cascade=orphan
// does. The server answers with the finalizer "orphan" on the component. The garbage collector knows no dependents but
// the Secrets of this package: it removes their ownerReferences, and then the finalizer, often before a reconcile reads
// the component. So the watch of the components notes the finalizer. If no watch of this process has seen the deletion
// begin, the Secret of the revisions shows it: its ownerReference is missing.

// cascades holds, by component, whether a deletion was begun with the propagation policy Orphan.
type cascades struct {
	byKey sync.Map
}

type cascade struct {
	uid    apitypes.UID
	orphan bool
}

// noted is a predicate that notes deletions, and lets every event pass.
func (c *cascades) noted() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool {
			if hasOrphanFinalizer(e.Object) {
				c.note(e.Object, true)
			}
			return true
		},
		UpdateFunc: func(e event.UpdateEvent) bool {
			begins := e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
			if orphan := hasOrphanFinalizer(e.ObjectNew); orphan || begins {
				c.note(e.ObjectNew, orphan)
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			c.byKey.Delete(client.ObjectKeyFromObject(e.Object))
			return true
		},
	}
}

func hasOrphanFinalizer(obj metav1.Object) bool {
	return !obj.GetDeletionTimestamp().IsZero() && slices.Contains(obj.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

func (c *cascades) note(obj client.Object, orphan bool) {
	c.byKey.Store(client.ObjectKeyFromObject(obj), cascade{obj.GetUID(), orphan})
}

// of returns how the deletion of the very component was begun.
func (c *cascades) of(obj client.Object) (orphan, seen bool) {
	value, _ := c.byKey.Load(client.ObjectKeyFromObject(obj))
	noted, _ := value.(cascade)
	return noted.orphan, noted.uid == obj.GetUID()
}
