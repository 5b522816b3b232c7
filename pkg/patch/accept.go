// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remember takes the object as what the server has.
func (h *Helper) remember(obj client.Object) error {
	c, err := contentOf(obj)
	if err != nil {
		return fmt.Errorf("%s: %w", h, err)
	}
	h.before = c
	h.resourceVersion = obj.GetResourceVersion()
	h.generation = obj.GetGeneration()
	h.deleting = obj.GetDeletionTimestamp() != nil
	return nil
}

// acceptMain takes over the metadata of the answer. Status may hold changes
// that are still to be written.
func (h *Helper) acceptMain(obj client.Object, answer *unstructured.Unstructured) error {
	acceptMetadata(obj, answer)
	status, had := h.before["status"]
	if err := h.remember(obj); err != nil {
		return err
	}
	delete(h.before, "status")
	if had {
		h.before["status"] = status
	}
	return nil
}

// acceptStatus takes over metadata and status of the answer, and complains
// about what is missing there.
func (h *Helper) acceptStatus(obj client.Object, sent map[string]any, answer *unstructured.Unstructured) error {
	// Changes of metadata that wait to be written would be overwritten; but
	// metadata is always written before status.
	acceptMetadata(obj, answer)
	kept, _ := answer.Object["status"].(map[string]any)
	fields := sortedUnique(lost("status", sent, kept))
	if err := acceptStatusContent(obj, kept); err != nil {
		return fmt.Errorf("%s: decode the status of the answer: %w", h, err)
	}
	if err := h.remember(obj); err != nil {
		return err
	}
	if len(fields) > 0 {
		return &PrunedError{Object: h.String(), Fields: fields}
	}
	return nil
}

func acceptMetadata(obj client.Object, answer *unstructured.Unstructured) {
	obj.SetResourceVersion(answer.GetResourceVersion())
	obj.SetGeneration(answer.GetGeneration())
	obj.SetLabels(answer.GetLabels())
	obj.SetAnnotations(answer.GetAnnotations())
	obj.SetFinalizers(answer.GetFinalizers())
	obj.SetOwnerReferences(answer.GetOwnerReferences())
	obj.SetDeletionTimestamp(answer.GetDeletionTimestamp())
	obj.SetDeletionGracePeriodSeconds(answer.GetDeletionGracePeriodSeconds())
	obj.SetManagedFields(answer.GetManagedFields())
}

// acceptStatusContent replaces the status of the object in place, unless it is
// the same already: then what a status may hold besides its JSON form survives.
func acceptStatusContent(obj client.Object, status map[string]any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if status == nil {
			unstructured.RemoveNestedField(u.Object, "status")
			return nil
		}
		u.Object["status"] = status
		return nil
	}
	field := statusField(reflect.ValueOf(obj).Elem())
	if !field.IsValid() {
		return nil
	}
	raw, err := json.Marshal(status)
	if err != nil {
		return err
	}
	decoded := reflect.New(field.Type())
	if err := utiljson.Unmarshal(raw, decoded.Interface()); err != nil {
		return err
	}
	same, err := sameJSON(field.Interface(), decoded.Interface())
	if err != nil || same {
		return err
	}
	field.Set(decoded.Elem())
	return nil
}

// statusField finds the field that is serialised as "status", also in inlined structs.
func statusField(object reflect.Value) reflect.Value {
	if object.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for i := range object.NumField() {
		definition := object.Type().Field(i)
		name, _, _ := strings.Cut(definition.Tag.Get("json"), ",")
		switch {
		case name == "status" && definition.IsExported():
			return object.Field(i)
		case definition.Anonymous && name == "":
			if found := statusField(object.Field(i)); found.IsValid() && found.CanSet() {
				return found
			}
		}
	}
	return reflect.Value{}
}

func sameJSON(a, b any) (bool, error) {
	rawA, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	rawB, err := json.Marshal(b)
	if err != nil {
		return false, err
	}
	return string(rawA) == string(rawB), nil
}
