// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// errNotFinite is about a number that neither JSON nor YAML can hold.
var errNotFinite = errors.New("it is no finite number")

// Copy returns a deep copy that consists of maps with string keys, lists
// and scalars. Integers become int64, so that templates can compare them.
func Copy(value any) (any, error) { return copyValue(value, 0) }

func copyValue(value any, depth int) (any, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("they are nested deeper than %d levels, or contain themselves", maxValueDepth)
	}
	switch value := value.(type) {
	case nil, string, bool, int64:
		return value, nil
	case float64:
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, errNotFinite
		}
		return value, nil
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, item := range value {
			c, err := copyValue(item, depth+1)
			if errors.Is(err, errNotFinite) {
				err = fmt.Errorf("%s: %w", key, err)
			}
			if err != nil {
				return nil, err
			}
			copied[key] = c
		}
		return copied, nil
	case []any:
		copied := make([]any, len(value))
		for i, item := range value {
			c, err := copyValue(item, depth+1)
			if err != nil {
				return nil, err
			}
			copied[i] = c
		}
		return copied, nil
	}
	switch v := reflect.ValueOf(value); {
	case v.CanInt():
		return v.Int(), nil
	case v.CanFloat():
		return copyValue(v.Float(), depth)
	}
	return throughJSON(value)
}

// throughJSON gives any other value the form that it has in JSON.
func throughJSON(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var copied any
	if err := utiljson.Unmarshal(data, &copied); err != nil {
		return nil, err
	}
	return copied, nil
}
