// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/difference"
	"github.com/corbel-run/corbel/internal/redact"
)

// Diff returns what differs between two sets of manifests: the objects that only the second one has
// (ChangeCreate), those that only the first one has (ChangeDelete), and those with other fields
// (ChangeUpdate, or ChangeRestartsPods). The manifests must have kinds. No value of a Secret is in the result,
// nor is it where other objects have it.
func Diff(ctx context.Context, before, after []client.Object) []PlannedChange {
	secrets := redact.From(ctx)
	if secrets == nil {
		secrets = redact.New()
	}
	earlier := map[Key]client.Object{}
	for _, object := range before {
		secrets.AddObjects(object)
		earlier[keyOfObject(object)] = object
	}
	var p Plan
	for _, object := range after {
		secrets.AddObjects(object)
		key := keyOfObject(object)
		was, found := earlier[key]
		delete(earlier, key)
		if !found {
			p.Changes = append(p.Changes, diffOf(object, ChangeCreate))
			continue
		}
		a, b := contentOf(was), contentOf(object)
		fields, more := difference.Fields(a, b, maxPlannedFields)
		if len(fields) == 0 {
			continue
		}
		change := diffOf(object, ChangeUpdate)
		for _, field := range fields {
			change.Fields = append(change.Fields, FieldChange(field))
		}
		if change.MoreFields = more; restartsPods(a, b) {
			change.Class = ChangeRestartsPods
		}
		p.Changes = append(p.Changes, change)
	}
	for _, object := range earlier {
		p.Changes = append(p.Changes, diffOf(object, ChangeDelete))
	}
	p.sort()
	p.redact(secrets)
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
