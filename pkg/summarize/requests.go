// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize

import (
	"context"
	"encoding/json"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
)

// handledField is where the answer stands in the status.
const handledField = "lastHandledReconcileAt"

// RecordReconcileReq answers a request for a reconcile: it copies the value of
// the annotation reconcile.fluxcd.io/requestedAt to status.lastHandledReconcileAt, whatever the result of the
// reconcile. Objects that lack the annotation stay as they are.
//
// Into a typed object the value is decoded, as by json.Unmarshal of a document with nothing but this field. The field may be of
// any type that a string can be decoded into, such as a string or a pointer to one; otherwise it stays as it is. Of an object
// without the field nothing changes, but a status that is a nil pointer becomes an empty one. If the object or its status
// has a method UnmarshalJSON, that method gets the document, and has to leave the other fields alone.
//
// An unstructured object does not show whether its schema has the field, and an object that was
// never asked for a reconcile lacks it all the same. So it is set there in any case: use this
// processor for unstructured objects only if their CustomResourceDefinition has
// status.lastHandledReconcileAt. Otherwise the server drops the field, and every reconcile of an
// object with the annotation ends with a patch.PrunedError.
func RecordReconcileReq(_ context.Context, _ Recorder, obj client.Object, _ result.Result, _ error) {
	obj = conditions.ObjectOf(obj)
	token, requested := obj.GetAnnotations()[vocabulary.AnnotationReconcileRequestedAt]
	if !requested {
		return
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		// An error means that the status is no map, so there is no field.
		_ = unstructured.SetNestedField(u.Object, token, "status", handledField)
		return
	}
	raw, err := json.Marshal(map[string]any{"status": map[string]any{handledField: token}})
	if err == nil {
		// An error means that the field has another type.
		_ = utiljson.Unmarshal(raw, obj)
	}
}
