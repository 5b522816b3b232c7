// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
)

// checker looks for mistakes that are best reported here, where the line is
// still known. Later they would go unnoticed, because the accessors of
// unstructured objects take a value of the wrong type for a missing one.
type checker struct {
	document document.Document
	mistakes *mistakes
	path     []any // of the object in the document
}

func (c checker) fail(err error, path ...any) {
	line := c.document.LineOf(slices.Concat(c.path, path)...)
	for _, step := range slices.Backward(c.path) {
		if i, ok := step.(int); ok {
			err = fmt.Errorf("items[%d]: %w", i, err)
		}
	}
	c.mistakes.add(c.document.Number, line, err)
}

func (c checker) object(object map[string]any) {
	if items, isList := itemsOf(object); isList {
		c.typeOf(object)
		c.items(items, isPlainList(object))
		return
	}
	c.typeOf(object)
	c.metadata(object)
}

// itemsOf returns the items of a list, and false for other objects. An object whose kind
// happens to end in List has a name.
func itemsOf(object map[string]any) ([]any, bool) {
	kind, _ := object["kind"].(string)
	items, ok := object["items"].([]any)
	metadata, _ := object["metadata"].(map[string]any)
	return items, strings.HasSuffix(kind, "List") && (ok || object["items"] == nil) && (kind == "List" || metadata["name"] == nil)
}

func isPlainList(object map[string]any) bool { return object["kind"] == "List" }

// items checks the items of a list. In a list of one kind, items need not
// repeat the kind.
func (c checker) items(items []any, typed bool) {
	for i, item := range items {
		inner := checker{document: c.document, mistakes: c.mistakes, path: slices.Concat(c.path, []any{"items", i})}
		switch object, ok := item.(map[string]any); {
		case !ok:
			inner.fail(fmt.Errorf("want an object, got %s", kindOf(item)))
		case typed || object["kind"] != nil:
			inner.object(object)
		default:
			inner.metadata(object)
		}
	}
}

func (c checker) typeOf(object map[string]any) {
	for _, field := range []string{"apiVersion", "kind"} {
		switch value := object[field].(type) {
		case string:
			if value == "" {
				c.fail(fmt.Errorf("%s is empty", field), field)
			}
		case nil:
			c.fail(fmt.Errorf("%s is missing", field))
		default:
			c.fail(fmt.Errorf("%s is %s, want a string", field, kindOf(value)), field)
		}
	}
}

func (c checker) metadata(object map[string]any) {
	metadata, ok := object["metadata"].(map[string]any)
	if object["metadata"] == nil {
		c.fail(errors.New("metadata.name is missing"))
		return
	}
	if !ok {
		c.fail(fmt.Errorf("metadata is %s, want a map", kindOf(object["metadata"])), "metadata")
		return
	}
	// A generated name is refused later, with an explanation.
	if metadata["name"] == nil && metadata["generateName"] == nil {
		c.fail(errors.New("metadata.name is missing"), "metadata")
	}
	for _, field := range []string{"name", "generateName", "namespace"} {
		if value := metadata[field]; value != nil && !isString(value) {
			c.fail(fmt.Errorf("metadata.%s is %s, want a string; put it into quotes", field, kindOf(value)), "metadata", field)
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		c.stringMap(metadata[field], field)
	}
}

func (c checker) stringMap(value any, field string) {
	if value == nil {
		return
	}
	entries, ok := value.(map[string]any)
	if !ok {
		c.fail(fmt.Errorf("metadata.%s is %s, want a map", field, kindOf(value)), "metadata", field)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		switch value := entries[key].(type) {
		case string:
		case nil:
			// The API server takes null for an empty string, the accessors
			// do not.
			entries[key] = ""
		default:
			c.fail(fmt.Errorf("metadata.%s[%q] is %s, want a string; put it into quotes", field, key, kindOf(value)), "metadata", field, key)
		}
	}
}

func isString(value any) bool {
	_, ok := value.(string)
	return ok
}

// kindOf names the kind of a value, never the value: it may be secret.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case []any:
		return "a list"
	case map[string]any:
		return "a map"
	default:
		return fmt.Sprintf("a %T", value)
	}
}
