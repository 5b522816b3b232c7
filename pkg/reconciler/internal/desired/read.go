// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/jsonsize"
)

// maxNesting bounds lists of lists.
const maxNesting = 8

const (
	// maxObjects and maxBytes limit the objects, all together.
	maxObjects = 100_000
	maxBytes   = 256 << 20
)

// read returns one item for each object, after lists were replaced by their elements.
// The error means that they are too many or too large.
func read(objects []client.Object, scheme *runtime.Scheme) ([]*item, error) {
	items := make([]*item, 0, len(objects))
	left := amount(maxBytes)
	for index, obj := range objects {
		place := position{index: index}
		content, err := contentOf(obj, scheme, &left)
		if errors.Is(err, errAmount) {
			return nil, err
		}
		if err != nil {
			broken := &item{place: place}
			broken.fail("%w", err)
			items = append(items, broken)
			continue
		}
		items = flatten(items, &item{place: place, content: content}, maxNesting)
		if len(items) > maxObjects {
			return nil, fmt.Errorf("there are more than %d objects", maxObjects)
		}
	}
	return items, nil
}

// contentOf returns a copy of the object as JSON-like values. Nothing that an
// untyped object holds is lost: it never takes the form of a Go type.
func contentOf(obj client.Object, scheme *runtime.Scheme, left *amount) (content map[string]any, err error) {
	// Objects may be of any type that a user wrote.
	defer func() {
		if value := recover(); value != nil {
			content, err = nil, fmt.Errorf("%T cannot be read: %v", obj, value)
		}
	}()
	if value := reflect.ValueOf(obj); obj == nil || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("is nil")
	}
	switch o := obj.(type) {
	case runtime.Unstructured:
		return cloneMap(o.UnstructuredContent(), left)
	case *metav1.PartialObjectMetadata:
		return nil, errors.New("holds metadata only, so what to apply is not known")
	default:
		if size := jsonsize.Of(obj, maxBytes); size > int(*left) {
			return nil, errAmount
		} else {
			*left -= amount(size)
		}
		return convert(obj, scheme)
	}
}

// convert turns a typed object into JSON-like values.
func convert(obj client.Object, scheme *runtime.Scheme) (map[string]any, error) {
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		if scheme == nil {
			return nil, fmt.Errorf("%T has no apiVersion and kind", obj)
		}
		kinds, _, err := scheme.ObjectKinds(obj)
		if err != nil {
			return nil, fmt.Errorf("%T has no apiVersion and kind: %w", obj, err)
		}
		if len(kinds) != 1 {
			return nil, fmt.Errorf("%T has no apiVersion and kind, and its type stands for %d kinds", obj, len(kinds))
		}
		gvk = kinds[0]
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("%T cannot be converted: %w", obj, err)
	}
	content["apiVersion"], content["kind"] = gvk.GroupVersion().String(), gvk.Kind
	dropEmptyTimestamps(content)
	return content, nil
}

// dropEmptyTimestamps removes "creationTimestamp: null", which many Go types
// have in their templates although nobody set it.
func dropEmptyTimestamps(value any) {
	switch v := value.(type) {
	case map[string]any:
		if timestamp, found := v["creationTimestamp"]; found && timestamp == nil {
			delete(v, "creationTimestamp")
		}
		for _, element := range v {
			dropEmptyTimestamps(element)
		}
	case []any:
		for _, element := range v {
			dropEmptyTimestamps(element)
		}
	}
}

// flatten appends the item or, if it is a list, its elements.
func flatten(items []*item, candidate *item, depth int) []*item {
	if !isList(candidate.content) {
		return append(items, candidate)
	}
	kind, _ := candidate.content["kind"].(string)
	candidate.key.Kind = kind
	elements, isSlice := candidate.content["items"].([]any)
	switch {
	case candidate.content["items"] == nil:
		return items
	case !isSlice:
		candidate.fail("items is not a list")
		return append(items, candidate)
	case depth == 0:
		candidate.fail("lists are nested more than %d times", maxNesting)
		return append(items, candidate)
	}
	for index, element := range elements {
		child := &item{place: candidate.place.element(index)}
		content, isMap := element.(map[string]any)
		if !isMap {
			child.fail("is not an object but %s", describe(element))
			items = append(items, child)
			continue
		}
		child.content = content
		inherit(content, candidate.content)
		items = flatten(items, child, depth-1)
	}
	return items
}

// isList tells whether the content is a list of objects. A kind of somebody's own
// may end in "List" and have a field "items", but unlike a list it has a name.
func isList(content map[string]any) bool {
	kind, _ := content["kind"].(string)
	if kind == "List" {
		return true
	}
	metadata, _ := content["metadata"].(map[string]any)
	_, hasItems := content["items"]
	return strings.HasSuffix(kind, "List") && hasItems && metadata["name"] == nil
}

// inherit gives an element the type that its list implies: servers leave it out.
func inherit(content, list map[string]any) {
	if content["kind"] != nil || content["apiVersion"] != nil {
		return
	}
	kind, _ := list["kind"].(string)
	if kind = strings.TrimSuffix(kind, "List"); kind != "" {
		content["kind"], content["apiVersion"] = kind, list["apiVersion"]
	}
}
