// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/internal/untyped"
)

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
	left := byteBudget(maxBytes)
	for index, obj := range objects {
		place := "object " + strconv.Itoa(index+1)
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
// untyped object holds is lost: it is never converted to a Go type.
func contentOf(obj client.Object, scheme *runtime.Scheme, left *byteBudget) (content map[string]any, err error) {
	defer guard.Into(&err) // callers of the engine may hand it objects of any type
	if value := reflect.ValueOf(obj); obj == nil || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("is nil")
	}
	if o, ok := obj.(runtime.Unstructured); ok {
		return cloneMap(o.UnstructuredContent(), left)
	}
	size := jsonsize.Of(obj, maxBytes)
	if size > int(*left) {
		return nil, errAmount
	}
	*left -= byteBudget(size)
	converted, err := untyped.Of(obj, scheme)
	if err != nil {
		return nil, fmt.Errorf("%T cannot be converted: %w", obj, err)
	}
	return converted.Object, nil
}

// flatten appends the item or, if it is a list, its elements.
func flatten(items []*item, candidate *item, depth int) []*item {
	if !isList(candidate.content) {
		return append(items, candidate)
	}
	candidate.key.Kind = text(candidate.content, "kind")
	elements, isSlice := candidate.content["items"].([]any)
	switch {
	case candidate.content["items"] == nil:
		return items
	case isEncrypted(candidate.content):
		candidate.fail("is encrypted by SOPS: %s", decryptFirst)
		return append(items, candidate)
	case !isSlice:
		candidate.fail("items is not a list")
		return append(items, candidate)
	case depth == 0:
		candidate.fail("lists are nested more than %d times", maxNesting)
		return append(items, candidate)
	}
	for index, element := range elements {
		child := &item{place: candidate.place + ", item " + strconv.Itoa(index+1)}
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

// isList reports whether the content is a list of objects. A custom kind may
// end in "List" and have a field "items", but unlike a list it has a name.
func isList(content map[string]any) bool {
	kind := text(content, "kind")
	_, hasItems := content["items"]
	return kind == "List" || strings.HasSuffix(kind, "List") && hasItems && at(content, "metadata", "name") == nil
}

// inherit gives an element the type that its list implies: servers leave it out.
func inherit(content, list map[string]any) {
	if content["kind"] != nil || content["apiVersion"] != nil {
		return
	}
	if kind := strings.TrimSuffix(text(list, "kind"), "List"); kind != "" {
		content["kind"], content["apiVersion"] = kind, list["apiVersion"]
	}
}

// maxDepth bounds the nesting of values, so that a value that contains itself is found.
//
// Unit: levels
// Limit: the nesting of values in an object; deeper ones are a mistake in the manifests.
const maxDepth = 500

// byteBudget is how many bytes may still be copied. A value that shares its parts needs
// little memory, and its copy may need all of it.
type byteBudget int

// spend reports whether there is enough for a value with a text of this length.
func (a *byteBudget) spend(length int) bool {
	*a -= byteBudget(length + valueBytes)
	return *a >= 0
}

// valueBytes is the size of a value beside its text.
const valueBytes = 4

// cloneMap returns a deep copy of the content of an untyped object. Generators written in Go put
// all kinds of values into maps; the copy has only the kinds that JSON decoders of Kubernetes give.
func cloneMap(content map[string]any, left *byteBudget) (map[string]any, error) {
	if content == nil {
		return map[string]any{}, nil
	}
	value, err := clone(content, maxDepth, left)
	if err != nil {
		return nil, err
	}
	return value.(map[string]any), nil
}

func clone(value any, depth int, left *byteBudget) (any, error) {
	text, _ := value.(string)
	if !left.spend(len(text)) {
		return nil, errAmount
	}
	switch v := value.(type) {
	case nil, string, bool, int64:
		return v, nil
	case map[string]any:
		return cloneFields(v, depth, left)
	case []any:
		return cloneElements(v, depth, left)
	case map[string]string:
		return cloneFields(v, depth, left)
	case []string:
		return cloneElements(v, depth, left)
	case []map[string]any:
		return cloneElements(v, depth, left)
	case uint64:
		if v > math.MaxInt64 {
			return nil, fieldError{"", fmt.Errorf("%d is beyond what a number in an object can be", v)}
		}
		return int64(v), nil
	case uint:
		return clone(uint64(v), depth, left)
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case float64:
		return cloneFloat(v)
	case float32:
		return cloneFloat(float64(v))
	case json.Number:
		return cloneNumber(v)
	default:
		if !left.spend(jsonsize.Of(value, int(*left))) {
			return nil, errAmount
		}
		return cloneByJSON(value)
	}
}

func cloneFields[T any](fields map[string]T, depth int, left *byteBudget) (any, error) {
	if fields == nil {
		return nil, nil
	}
	if depth == 0 {
		return nil, errDepth
	}
	copied := make(map[string]any, len(fields))
	for name, value := range fields {
		element, err := clone(value, depth-1, left)
		if err != nil {
			return nil, within("."+name, err)
		}
		if !left.spend(len(name)) {
			return nil, errAmount
		}
		copied[name] = element
	}
	return copied, nil
}

func cloneElements[T any](elements []T, depth int, left *byteBudget) (any, error) {
	if elements == nil {
		return nil, nil
	}
	if depth == 0 {
		return nil, errDepth
	}
	copied := make([]any, len(elements))
	for i, value := range elements {
		element, err := clone(value, depth-1, left)
		if err != nil {
			return nil, within("["+strconv.Itoa(i)+"]", err)
		}
		copied[i] = element
	}
	return copied, nil
}

func cloneFloat(v float64) (any, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil, fieldError{"", fmt.Errorf("%v is not a number in JSON", v)}
	}
	return v, nil
}

func cloneNumber(v json.Number) (any, error) {
	if i, err := strconv.ParseInt(string(v), 10, 64); err == nil {
		return i, nil
	}
	f, err := strconv.ParseFloat(string(v), 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && math.Abs(f) >= 1<<63 && !strings.ContainsAny(string(v), ".eE"):
		return nil, fieldError{"", fmt.Errorf("%s is beyond what a number in an object can be", v)}
	case err != nil:
		return nil, fieldError{"", fmt.Errorf("%q is not a number", string(v))}
	}
	return cloneFloat(f)
}

// cloneByJSON copies values that have a form in JSON: times, quantities, other maps.
func cloneByJSON(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fieldError{"", fmt.Errorf("%T has no form in JSON: %w", value, err)}
	}
	var decoded any
	if err := utiljson.Unmarshal(data, &decoded); err != nil {
		return nil, fieldError{"", fmt.Errorf("%T has no form in JSON: %w", value, err)}
	}
	return decoded, nil
}

var (
	errDepth = errors.New("values are nested too deeply")
	// errAmount is about all objects, not only about the object that exceeds the limit.
	errAmount = fmt.Errorf("the objects have more than %d bytes together", maxBytes)
)

// fieldError names the field with a value that cannot be used.
type fieldError struct {
	path string
	err  error
}

func (e fieldError) Error() string {
	if e.path == "" {
		return e.err.Error()
	}
	return e.path[min(len(e.path), 1):] + ": " + e.err.Error()
}

func (e fieldError) Unwrap() error { return e.err }

// within puts a step before the path of a fieldError. Paths of values that are nested too deeply
// would not help and are left out.
func within(step string, err error) error {
	if inner, ok := errors.AsType[fieldError](err); ok {
		return fieldError{step + inner.path, inner.err}
	}
	return err
}

// describe names the type of a JSON-like value.
func describe(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	default:
		return "a number"
	}
}
