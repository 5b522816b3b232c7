// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

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
