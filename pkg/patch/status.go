// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
)

// OriginalCondition returns the condition as it was when the Helper was made, or nil.
func (h *Helper) OriginalCondition(conditionType string) *metav1.Condition {
	list, err := conditionsOf(h.original.status())
	if err != nil {
		return nil
	}
	for i := range list {
		if list[i].Type == conditionType {
			return &list[i]
		}
	}
	return nil
}

// statusOf returns the status that is to be on the server.
func (h *Helper) statusOf(obj client.Object, options HelperOptions) (map[string]any, error) {
	after, err := contentOf(obj)
	if err != nil {
		return nil, err
	}
	status := after.status()
	if err := completeConditions(status); err != nil {
		return nil, err
	}
	if !options.IncludeStatusObservedGeneration {
		return status, nil
	}
	known, err := h.hasObservedGeneration(obj)
	if err != nil || !known {
		return status, err
	}
	status = maps.Clone(status)
	if status == nil {
		status = map[string]any{}
	}
	status["observedGeneration"] = h.generation
	return status, nil
}

// completeConditions completes conditions in the form that metav1.Condition has. Conditions in another form are left alone.
func completeConditions(status map[string]any) error {
	list, _ := status["conditions"].([]any)
	for _, element := range list {
		content, _ := element.(map[string]any)
		if content["reason"] == nil || content["message"] == nil { // metav1.Condition always serialises both
			continue
		}
		condition, err := convert[metav1.Condition](content)
		if err != nil {
			continue
		}
		if complete := conditions.Complete(condition, time.Now()); complete != condition {
			completed, err := convert[map[string]any](complete)
			if err != nil {
				return err
			}
			maps.Copy(content, completed)
		}
	}
	return nil
}

// hasObservedGeneration finds out whether the Go type keeps the field. Sent
// without it, the field would be a change in every reconcile.
func (h *Helper) hasObservedGeneration(obj client.Object) (bool, error) {
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return true, nil
	}
	if h.hasGenerationField == nil {
		probe, err := h.newObject(obj)
		if err != nil {
			return false, err
		}
		// An error means that the field is something else, so it is not ours to set.
		decodeErr := utiljson.Unmarshal([]byte(`{"status":{"observedGeneration":1}}`), probe)
		c, err := contentOf(probe)
		if err != nil {
			return false, err
		}
		h.hasGenerationField = new(decodeErr == nil && c.status()["observedGeneration"] == int64(1))
	}
	return *h.hasGenerationField, nil
}

// mergeStatus puts our status on top of theirs. It refuses if they changed
// anything of it but conditions that we do not own.
func mergeStatus(before, after, server map[string]any, owned []string) (map[string]any, bool) {
	if reflect.DeepEqual(before, server) || len(before) == 0 && len(server) == 0 {
		return after, true
	}
	if len(owned) == 0 || !reflect.DeepEqual(withoutConditions(before), withoutConditions(server)) {
		return nil, false
	}
	base, err1 := conditionsOf(before)
	ours, err2 := conditionsOf(after)
	theirs, err3 := conditionsOf(server)
	if err1 != nil || err2 != nil || err3 != nil || !sameOwned(base, theirs, owned) {
		return nil, false
	}
	list, err := convert[[]any](conditions.Merge(base, ours, theirs, owned))
	if err != nil {
		return nil, false
	}
	merged := maps.Clone(after)
	merged["conditions"] = list
	return merged, true
}

// sameOwned reports whether the conditions that we own are the same in both lists.
func sameOwned(base, theirs []metav1.Condition, owned []string) bool {
	foreign := func(condition metav1.Condition) bool { return !slices.Contains(owned, condition.Type) }
	return equality.Semantic.DeepEqual(
		slices.DeleteFunc(slices.Clone(base), foreign),
		slices.DeleteFunc(slices.Clone(theirs), foreign))
}

func withoutConditions(status map[string]any) map[string]any {
	rest := map[string]any{}
	maps.Copy(rest, status)
	delete(rest, "conditions")
	return rest
}

func conditionsOf(status map[string]any) ([]metav1.Condition, error) {
	return convert[[]metav1.Condition](status["conditions"])
}

// convert returns the value in another Go form of the same JSON.
func convert[T any](value any) (converted T, err error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return converted, err
	}
	return converted, utiljson.Unmarshal(raw, &converted)
}

// writeConditionsAsMain writes the conditions where there is no subresource for status: nothing
// else of it, because a later Commit would count it as durable. Every change counts as a new
// generation there, so a condition that only repeats the generation is not a change: it would never
// come to rest.
func (h *Helper) writeConditionsAsMain(ctx context.Context, obj client.Object) error {
	after, err := contentOf(obj)
	if err != nil {
		return err
	}
	const key = "conditions"
	list := after.status()[key]
	if list == nil || reflect.DeepEqual(withoutGenerations(h.before.status()[key]), withoutGenerations(list)) {
		return nil
	}
	answer, err := h.send(ctx, obj, mainWrite{changes: map[string]any{"status": map[string]any{key: list}}}, afterActing)
	if err != nil {
		return err
	}
	if err := h.acceptMain(obj, answer); err != nil {
		return err
	}
	status := maps.Clone(h.before.status())
	if status == nil {
		status = map[string]any{}
	}
	status[key] = list
	h.before["status"] = status
	return nil
}

func withoutGenerations(value any) any {
	switch v := value.(type) {
	case map[string]any:
		rest := map[string]any{}
		for key, member := range v {
			if key != "observedGeneration" {
				rest[key] = withoutGenerations(member)
			}
		}
		return rest
	case []any:
		rest := make([]any, len(v))
		for i := range v {
			rest[i] = withoutGenerations(v[i])
		}
		return rest
	default:
		return value
	}
}

// setServerState records the object as the state of the server.
func (h *Helper) setServerState(obj client.Object) error {
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

// acceptMain copies the metadata of the answer into the object. Status may hold changes
// that are still to be written.
func (h *Helper) acceptMain(obj client.Object, answer *unstructured.Unstructured) error {
	acceptMetadata(obj, answer)
	status, had := h.before["status"]
	if err := h.setServerState(obj); err != nil {
		return err
	}
	delete(h.before, "status")
	if had {
		h.before["status"] = status
	}
	return nil
}

// acceptStatus copies metadata and status of the answer into the object, and reports the fields
// that are missing there.
func (h *Helper) acceptStatus(obj client.Object, sent map[string]any, answer *unstructured.Unstructured) error {
	// Changes of metadata that wait to be written would be overwritten; but
	// metadata is always written before status.
	acceptMetadata(obj, answer)
	kept, _ := answer.Object["status"].(map[string]any)
	fields := slices.Compact(slices.Sorted(slices.Values(missingPaths("status", sent, kept))))
	if err := acceptStatusContent(obj, kept); err != nil {
		return fmt.Errorf("%s: decode the status of the answer: %w", h, err)
	}
	if err := h.setServerState(obj); err != nil {
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

// acceptStatusContent replaces the status of the object in place, unless it is the same already:
// then values of a status besides its JSON form survive.
func acceptStatusContent(obj client.Object, status map[string]any) error {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if status == nil {
			delete(u.Object, "status")
		} else {
			u.Object["status"] = status
		}
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
