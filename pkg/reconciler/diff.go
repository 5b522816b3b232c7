// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
)

// Diff compares two sets of manifests and returns the objects that only the second set has
// (ChangeCreate), the objects that only the first set has (ChangeDelete), and the objects with
// other fields (ChangeUpdate, or ChangeRestartsPods). The manifests must have kinds. No value of a
// Secret is in the result, and no value at all in the context of a reconcile that has read a
// Secret.
func Diff(ctx context.Context, before, after []client.Object) []report.PlannedChange {
	earlier := map[report.Key]client.Object{}
	for _, object := range before {
		earlier[KeyOf(object)] = object
	}
	var p report.Plan
	for _, object := range after {
		key := KeyOf(object)
		was, found := earlier[key]
		delete(earlier, key)
		if !found {
			p.Changes = append(p.Changes, diffOf(object, report.ChangeCreate))
			continue
		}
		a, b := contentOf(was), contentOf(object)
		fields, more := changedFields(ctx, a, b)
		if len(fields) == 0 {
			continue
		}
		change := diffOf(object, report.ChangeUpdate)
		change.Fields, change.MoreFields = fields, more
		if restartsPods(a, b) {
			change.Class = report.ChangeRestartsPods
		}
		p.Changes = append(p.Changes, change)
	}
	for _, object := range earlier {
		p.Changes = append(p.Changes, diffOf(object, report.ChangeDelete))
	}
	p.Sort()
	return p.Changes
}

func diffOf(object client.Object, class report.ChangeClass) report.PlannedChange {
	return report.PlannedChange{
		Key: KeyOf(object), APIVersion: object.GetObjectKind().GroupVersionKind().GroupVersion().String(), Class: class,
		Destructive: class == report.ChangeDelete,
	}
}

// KeyOf returns the key of an object, which must have its kind.
func KeyOf(object client.Object) report.Key {
	gvk := object.GetObjectKind().GroupVersionKind()
	return report.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
}

// contentOf returns nil for an object that cannot be serialised.
func contentOf(object client.Object) map[string]any {
	if untyped, ok := object.(*unstructured.Unstructured); ok {
		return untyped.Object
	}
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	return content
}
