// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// content returns the object as JSON has it. The server's answer to it is not decoded into the Go
// type, which would keep fields that the server dropped.
func (l *Lock) content() (*unstructured.Unstructured, error) {
	return l.contentOf(l.obj)
}

// knownContent returns the part of the server's answer that the Go type knows: a field of it that
// is missing in memory was removed there.
func (l *Lock) knownContent(answer *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t := reflect.TypeOf(l.obj)
	if t.Kind() != reflect.Pointer {
		return nil, fmt.Errorf("%T is no pointer", l.obj)
	}
	raw, err := answer.MarshalJSON()
	if err != nil {
		return nil, err
	}
	typed := reflect.New(t.Elem()).Interface()
	if err := utiljson.Unmarshal(raw, typed); err != nil {
		return nil, fmt.Errorf("decode %T: %w", l.obj, err)
	}
	return l.contentOf(typed)
}

func (l *Lock) contentOf(obj any) (*unstructured.Unstructured, error) {
	gvk, err := l.client.GroupVersionKindFor(l.obj)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", l.obj, err)
	}
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", l.obj, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := utiljson.Unmarshal(raw, &u.Object); err != nil {
		return nil, fmt.Errorf("decode %T: %w", l.obj, err)
	}
	u.SetGroupVersionKind(gvk)
	if status, ok := u.Object["status"].(map[string]any); ok {
		dropNulls(status)
	}
	return u, nil
}

// newObject returns an object of the same kind and name.
func (l *Lock) newObject() (*unstructured.Unstructured, error) {
	gvk, err := l.client.GroupVersionKindFor(l.obj)
	if err != nil {
		return nil, fmt.Errorf("find the kind of %T: %w", l.obj, err)
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(l.obj.GetNamespace())
	u.SetName(l.obj.GetName())
	return u, nil
}

// readServer reads the object from the server.
func (l *Lock) readServer(ctx context.Context) (*unstructured.Unstructured, error) {
	u, err := l.newObject()
	if err != nil {
		return nil, err
	}
	return u, l.reader.Get(ctx, client.ObjectKeyFromObject(l.obj), u)
}

// dropNulls removes members that come from a nil slice or map without omitempty: a schema may
// refuse them, and they mean the same as absence.
func dropNulls(object map[string]any) {
	for key, value := range object {
		switch v := value.(type) {
		case nil:
			delete(object, key)
		case map[string]any:
			dropNulls(v)
		}
	}
}

// pathOf finds the conditions in the status by a condition that was just put there.
func pathOf(u *unstructured.Unstructured, condition Condition) ([]string, error) {
	want, err := convert[map[string]any](condition)
	if err != nil {
		return nil, err
	}
	status, _ := u.Object["status"].(map[string]any)
	path := search(status, want)
	switch {
	case path == nil:
		return nil, errors.New("what Conditions returns is not part of the object's status")
	case slices.Equal(path, []string{"conditions"}):
		return nil, errors.New("the field status.conditions belongs to conditions with the statuses True, False and Unknown; keep the steps in another one, such as status.steps")
	}
	return path, nil
}

func search(object map[string]any, want map[string]any) []string {
	for key, value := range object {
		switch v := value.(type) {
		case map[string]any:
			if path := search(v, want); path != nil {
				return append([]string{key}, path...)
			}
		case []any:
			for _, element := range v {
				if isSame(element, want) {
					return []string{key}
				}
			}
		}
	}
	return nil
}

// isSame compares the identity of a locked condition.
func isSame(element any, want map[string]any) bool {
	condition, ok := element.(map[string]any)
	if !ok || condition["type"] != want["type"] || condition["status"] != want["status"] {
		return false
	}
	a, _, _ := unstructured.NestedString(condition, "lock", "token")
	b, _, _ := unstructured.NestedString(want, "lock", "token")
	return a == b
}

func statusPath(path []string) []string { return append([]string{"status"}, path...) }

// conditionAt returns the condition as JSON, or nil.
func conditionAt(u *unstructured.Unstructured, path []string, conditionType ConditionType) (map[string]any, error) {
	list, _, err := unstructured.NestedSlice(u.Object, statusPath(path)...)
	for _, element := range list {
		if condition, ok := element.(map[string]any); ok && condition["type"] == string(conditionType) {
			return condition, nil
		}
	}
	return nil, err
}

// conditionsAt returns the conditions that the server has.
func conditionsAt(u *unstructured.Unstructured, path []string) (Conditions, error) {
	value, _, err := unstructured.NestedFieldNoCopy(u.Object, statusPath(path)...)
	if err != nil {
		return nil, err
	}
	return convert[Conditions](value)
}

// convert returns the value in another Go form of the same JSON.
func convert[T any](value any) (converted T, err error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return converted, err
	}
	return converted, utiljson.Unmarshal(raw, &converted)
}
