// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Diff returns what differs between two sets of manifests: the objects that only the second one has
// (ChangeCreate), those that only the first one has (ChangeDelete), and those with other fields
// (ChangeUpdate, or ChangeRestartsPods). The manifests must have kinds. No value of a Secret is in the result,
// and no value at all in the context of a reconcile that has read a Secret.
func Diff(ctx context.Context, before, after []client.Object) []PlannedChange {
	earlier := map[Key]client.Object{}
	for _, object := range before {
		earlier[keyOfObject(object)] = object
	}
	var p Plan
	for _, object := range after {
		key := keyOfObject(object)
		was, found := earlier[key]
		delete(earlier, key)
		if !found {
			p.Changes = append(p.Changes, diffOf(object, ChangeCreate))
			continue
		}
		a, b := contentOf(was), contentOf(object)
		fields, more := changedFields(ctx, a, b)
		if len(fields) == 0 {
			continue
		}
		change := diffOf(object, ChangeUpdate)
		change.Fields, change.MoreFields = fields, more
		if restartsPods(a, b) {
			change.Class = ChangeRestartsPods
		}
		p.Changes = append(p.Changes, change)
	}
	for _, object := range earlier {
		p.Changes = append(p.Changes, diffOf(object, ChangeDelete))
	}
	p.sort()
	return p.Changes
}

func diffOf(object client.Object, class ChangeClass) PlannedChange {
	return PlannedChange{
		Key: keyOfObject(object), APIVersion: object.GetObjectKind().GroupVersionKind().GroupVersion().String(), Class: class,
		Destructive: class == ChangeDelete,
	}
}

func keyOfObject(object client.Object) Key {
	gvk := object.GetObjectKind().GroupVersionKind()
	return Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// contentOf is nil for what cannot be serialised.
func contentOf(object client.Object) map[string]any {
	if untyped, ok := object.(*unstructured.Unstructured); ok {
		return untyped.Object
	}
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return content
}
