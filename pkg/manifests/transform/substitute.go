// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

var (
	variableName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	variablePattern = regexp.MustCompile(`\$?\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
)

// Substitute returns a transformer that replaces ${NAME} by values in all texts of the objects, but not in keys,
// type, name and namespace. A text stays a text. Names without a value stay, and $${NAME} becomes ${NAME} if NAME
// has a value. Without a target all objects are changed.
func Substitute(values map[string]string, t *v1alpha1.PatchTarget) (manifests.ObjectTransformer, error) {
	parsed, err := parseTarget(t)
	errs := []error{err}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !variableName.MatchString(name) {
			errs = append(errs, fmt.Errorf("value %q: a name consists of letters, digits and underscores", name))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	values = maps.Clone(values)
	return objectFunc{digest.OfValues("substitute", values, t), func(namespace, _ string, objects []client.Object) ([]client.Object, error) {
		list, err := convert.ToUnstructuredList(objects)
		if err != nil {
			return nil, err
		}
		b := newBudget(context.Background())
		list, err = b.each(list, func(object *unstructured.Unstructured) bool { return parsed.matches(object, namespace) }, "substitution", maxObject,
			func(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
				kind, name, own := object.GroupVersionKind(), object.GetName(), object.GetNamespace()
				s := &substitution{values: values, left: maxObject}
				s.value(object.Object)
				object.SetGroupVersionKind(kind)
				object.SetName(name)
				object.SetNamespace(own)
				if s.left < 0 {
					return nil, fmt.Errorf("%s: the values make it larger than %d bytes", convert.Name(object), maxObject)
				}
				return object, nil
			})
		if err != nil {
			return nil, err
		}
		return convert.ToObjects(list), nil
	}}, nil
}

// substitution changes the texts of one object.
type substitution struct {
	values map[string]string
	// left is how many bytes may still be put in.
	left int
}

func (s *substitution) value(value any) any {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			value[key] = s.value(child)
		}
	case []any:
		for i, child := range value {
			value[i] = s.value(child)
		}
	case string:
		return s.text(value)
	}
	return value
}

func (s *substitution) text(text string) string {
	if !strings.Contains(text, "${") {
		return text
	}
	return variablePattern.ReplaceAllStringFunc(text, func(found string) string {
		name := strings.TrimSuffix(found[strings.Index(found, "{")+1:], "}")
		value, known := s.values[name]
		switch {
		case !known:
			return found
		case strings.HasPrefix(found, "$$"):
			return found[1:]
		}
		if s.left -= len(value); s.left < 0 {
			return ""
		}
		return value
	})
}

// maxText limits the text of one patch, in bytes.
const maxText = 1 << 20

// text is a patch that was parsed: operations, or objects to merge.
type text struct {
	operations operations
	objects    []*unstructured.Unstructured
}

// size is how much a patch adds to an object at most. Operations may copy any part of it.
func (t *text) size() int {
	bytes := 0
	for _, object := range t.objects {
		bytes += jsonsize.Of(object.Object, maxObject)
	}
	for _, operation := range t.operations {
		if operation.kind == "copy" {
			return maxObject
		}
		bytes += jsonsize.Of(operation.value, maxObject) + len(operation.path[len(operation.path)-1])
	}
	return bytes
}

func parseText(patch string) (*text, error) {
	if len(patch) > maxText {
		return nil, fmt.Errorf("it is longer than %d bytes", maxText)
	}
	documents, mistakes := document.Parse([]byte(patch))
	if len(mistakes) > 0 {
		return nil, fmt.Errorf("line %d: %w", mistakes[0].Line, mistakes[0].Err)
	}
	parsed := &text{}
	for _, d := range documents {
		switch value := d.Value.(type) {
		case []any:
			if len(documents) > 1 {
				return nil, errors.New("JSON patch operations must be one list")
			}
			list, err := parseOperations(value)
			parsed.operations = list
			return parsed, err
		case map[string]any:
			if err := checkSize(value); err != nil {
				return nil, fmt.Errorf("line %d: %w", d.Line, err)
			}
			parsed.objects = append(parsed.objects, &unstructured.Unstructured{Object: value})
		default:
			return nil, fmt.Errorf("line %d: want a merge patch or a list of JSON patch operations", d.Line)
		}
	}
	if len(parsed.objects) == 0 {
		return nil, errors.New("it is empty")
	}
	return parsed, nil
}
