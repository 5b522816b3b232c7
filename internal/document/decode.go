// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxDecodeErrors limits how many mistakes of one file are reported.
const maxDecodeErrors = 50

// Error is one mistake in a stream, such as a file with manifests. An error of Decode may join
// several of them; errors.As finds the first.
type Error struct {
	// File is the name of the file, if the stream is one.
	File string
	// Document counts the documents of the stream that hold something, from 1;
	// it is 0 if the mistake concerns the whole stream.
	Document int
	// Line counts the lines of the stream, from 1; it is 0 if it is not known.
	Line int
	// Err is the mistake.
	Err error
}

// Error returns the place and the mistake.
func (e *Error) Error() string {
	place := fmt.Sprintf("document %d, line %d", e.Document, e.Line)
	switch {
	case e.Document == 0:
		place = fmt.Sprintf("line %d", e.Line)
	case e.Line == 0:
		place = fmt.Sprintf("document %d", e.Document)
	}
	return fmt.Sprintf("%s: %v", strings.TrimPrefix(e.File+": "+place, ": "), e.Err)
}

// Place returns the file and the line.
func (e *Error) Place() string { return fmt.Sprintf("%s:%d", e.File, e.Line) }

// Unwrap returns the mistake without its place.
func (e *Error) Unwrap() error { return e.Err }

// Decode reads the objects in a file of YAML or JSON documents. The name is for errors only. Values
// are converted as by clients of the API server.
//
// Documents that hold nothing are left out. Lists stay lists, with their items
// under "items". Refused are: text that does not parse or is not UTF-8, keys
// that are set twice, documents that are no objects, objects without
// apiVersion, kind or name, and labels and annotations that are no strings.
// The error lists all mistakes of the file, each as an Error, but only the
// first one of a document that is no valid YAML; there are no objects then.
func Decode(name string, data []byte) ([]*unstructured.Unstructured, error) {
	return Options{}.Decode(name, data)
}

// Decode reads the objects in a file, as the function of this name does with the default options.
func (o Options) Decode(name string, data []byte) ([]*unstructured.Unstructured, error) {
	documents, failed := o.Parse(data)
	mistakes := &mistakes{file: name}
	for _, e := range failed {
		mistakes.add(e.Document, e.Line, e.Err)
	}
	return objectsOf(documents, mistakes)
}

// ObjectsOf returns the objects that values are, each as a document would be that is
// decoded; see Decode. The values belong to the objects afterwards. The name is for errors
// only.
func ObjectsOf(name string, values ...any) ([]*unstructured.Unstructured, error) {
	documents := make([]Document, len(values))
	for i, value := range values {
		documents[i] = Document{Number: i + 1, Value: value}
	}
	return objectsOf(documents, &mistakes{file: name})
}

func objectsOf(documents []Document, mistakes *mistakes) ([]*unstructured.Unstructured, error) {
	objects := make([]*unstructured.Unstructured, 0, len(documents))
	for _, d := range documents {
		content, ok := d.Value.(map[string]any)
		if !ok {
			mistakes.add(d.Number, d.Line, fmt.Errorf("want an object, got %s", kindOf(d.Value)))
			continue
		}
		checker{document: d, mistakes: mistakes}.object(content)
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	if err := mistakes.join(); err != nil {
		return nil, err
	}
	return objects, nil
}

// WithoutLists returns decoded objects with the items of lists in place of the lists. Items without
// a type have the type that their list implies.
func WithoutLists(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, object := range objects {
		items, isList := itemsOf(object.Object)
		if !isList {
			all = append(all, object)
			continue
		}
		for _, item := range items {
			content, ok := item.(map[string]any)
			if !ok {
				continue // Decode refuses it
			}
			if kind := strings.TrimSuffix(object.GetKind(), "List"); kind != "" && content["kind"] == nil && content["apiVersion"] == nil {
				content["kind"], content["apiVersion"] = kind, object.GetAPIVersion()
			}
			all = append(all, WithoutLists([]*unstructured.Unstructured{{Object: content}})...)
		}
	}
	return all
}

// mistakes collects the mistakes of a file.
type mistakes struct {
	file  string
	errs  []error
	total int
}

func (m *mistakes) add(document, line int, err error) {
	if m.total++; m.total <= maxDecodeErrors {
		m.errs = append(m.errs, &Error{File: m.file, Document: document, Line: line, Err: err})
	}
}

func (m *mistakes) join() error {
	if more := m.total - len(m.errs); more > 0 {
		m.errs = append(m.errs, fmt.Errorf("%s: %d more mistakes", m.file, more))
	}
	return errors.Join(m.errs...)
}

// checker looks for mistakes that are best reported here, where the line is
// still known. Later they would go unnoticed, because the accessors of
// unstructured objects treat a value of the wrong type as a missing one.
type checker struct {
	document Document
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

// itemsOf returns the items of a list, and false for other objects. An object of a kind
// that happens to end in List has a name.
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
			// The API server treats null as an empty string, the accessors
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
