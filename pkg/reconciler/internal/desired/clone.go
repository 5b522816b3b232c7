// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/internal/jsonsize"
)

// maxDepth bounds the nesting of values, so that a value that contains itself is found.
const maxDepth = 500

// amount is how many bytes may still be copied. A value that shares its parts takes
// little memory, and its copy may take all of it.
type amount int

// take reports whether there is enough for a value with a text of this length.
func (a *amount) take(length int) bool {
	*a -= amount(length + valueBytes)
	return *a >= 0
}

// valueBytes is what a value counts beside its text.
const valueBytes = 4

// cloneMap returns a deep copy of the content of an untyped object. Generators
// written in Go put all kinds of values into maps; the copy has only those that
// JSON decoders of Kubernetes give.
func cloneMap(content map[string]any, left *amount) (map[string]any, error) {
	if content == nil {
		return map[string]any{}, nil
	}
	value, err := clone(content, maxDepth, left)
	if err != nil {
		return nil, err
	}
	return value.(map[string]any), nil
}

func clone(value any, depth int, left *amount) (any, error) {
	text, _ := value.(string)
	if !left.take(len(text)) {
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
		if !left.take(jsonsize.Of(value, int(*left))) {
			return nil, errAmount
		}
		return cloneByJSON(value)
	}
}

func cloneFields[T any](fields map[string]T, depth int, left *amount) (any, error) {
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
		if !left.take(len(name)) {
			return nil, errAmount
		}
		copied[name] = element
	}
	return copied, nil
}

func cloneElements[T any](elements []T, depth int, left *amount) (any, error) {
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

// cloneByJSON takes over what has a form in JSON: times, quantities, other maps.
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
	// errAmount is about all objects, not only the one that exceeds it.
	errAmount = fmt.Errorf("the objects have more than %d bytes together", maxBytes)
)

// fieldError says at which field a value cannot be used.
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

// within puts a step before the path of a fieldError. Paths of values that are
// nested too deeply would say nothing and are left out.
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
