// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"fmt"
	"maps"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// content is an object as JSON has it. Everything is compared in this form: two
// Go values that serialise alike are the same.
type content map[string]any

// writableMetadata are the parts of metadata that a client may change.
var writableMetadata = []string{"labels", "annotations", "finalizers", "ownerReferences"}

func contentOf(obj client.Object) (content, error) {
	raw, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode the object: %w", err)
	}
	var c map[string]any
	// This decoder keeps integers as int64, as unstructured objects have them.
	if err := utiljson.Unmarshal(raw, &c); err != nil {
		return nil, fmt.Errorf("decode the object: %w", err)
	}
	return withoutNulls(c), nil
}

func (c content) status() map[string]any {
	status, _ := c["status"].(map[string]any)
	return status
}

// main is what is written by way of the object itself: everything but status,
// and of metadata only what a client may change.
func (c content) main(withoutSpec bool) map[string]any {
	main := map[string]any{}
	if !withoutSpec {
		main = maps.Clone(c)
		for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
			delete(main, key)
		}
	}
	metadata, _ := c["metadata"].(map[string]any)
	writable := map[string]any{}
	for _, key := range writableMetadata {
		if value, ok := metadata[key]; ok {
			writable[key] = value
		}
	}
	// It is there even if it is empty: the whole of metadata is never to be removed.
	main["metadata"] = writable
	return main
}

// withoutNulls drops null members: a merge patch cannot express them, and they
// mean the same as absence.
func withoutNulls(object map[string]any) map[string]any {
	for key, value := range object {
		if value == nil {
			delete(object, key)
			continue
		}
		cleanNested(value)
	}
	return object
}

func cleanNested(value any) {
	switch v := value.(type) {
	case map[string]any:
		withoutNulls(v)
	case []any:
		for _, element := range v {
			cleanNested(element)
		}
	}
}
