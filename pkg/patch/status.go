// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

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

// hasObservedGeneration finds out whether the Go type keeps the field. Sent
// without it, the field would be a change in every pass.
func (h *Helper) hasObservedGeneration(obj client.Object) (bool, error) {
	if _, ok := obj.(*unstructured.Unstructured); ok {
		return true, nil
	}
	if h.knowsGeneration == nil {
		probe, err := h.fresh(obj)
		if err != nil {
			return false, err
		}
		// An error means that the field is something else, so it is not ours to set.
		decodeErr := utiljson.Unmarshal([]byte(`{"status":{"observedGeneration":1}}`), probe)
		c, err := contentOf(probe)
		if err != nil {
			return false, err
		}
		h.knowsGeneration = new(decodeErr == nil && c.status()["observedGeneration"] == int64(1))
	}
	return *h.knowsGeneration, nil
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
	list, err := listOf(conditions.Merge(base, ours, theirs, owned))
	if err != nil {
		return nil, false
	}
	merged := maps.Clone(after)
	merged["conditions"] = list
	return merged, true
}

// sameOwned tells whether the conditions that we own are the same in both lists.
func sameOwned(base, theirs []metav1.Condition, owned []string) bool {
	foreign := func(condition metav1.Condition) bool { return !slices.Contains(owned, condition.Type) }
	return equality.Semantic.DeepEqual(
		slices.DeleteFunc(slices.Clone(base), foreign),
		slices.DeleteFunc(slices.Clone(theirs), foreign))
}

func withoutConditions(status map[string]any) map[string]any {
	rest := map[string]any{}
	for key, value := range status {
		if key != "conditions" {
			rest[key] = value
		}
	}
	return rest
}

func conditionsOf(status map[string]any) ([]metav1.Condition, error) {
	raw, err := json.Marshal(status["conditions"])
	if err != nil {
		return nil, err
	}
	var list []metav1.Condition
	return list, json.Unmarshal(raw, &list)
}

func listOf(list []metav1.Condition) ([]any, error) {
	raw, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	var generic []any
	return generic, utiljson.Unmarshal(raw, &generic)
}

// writeConditionsAsMain writes the conditions where there is no subresource for
// status: nothing else of it, because a later Commit would take it for durable.
// Every change counts as a new generation there, so what only repeats the
// generation is not a change: it would never come to rest.
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
	answer, err := h.send(ctx, obj, mainWrite{changes: map[string]any{"status": map[string]any{key: list}}}, toReport)
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
