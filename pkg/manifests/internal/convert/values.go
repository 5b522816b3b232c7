// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/pkg/types"
)

// maxDepth limits how deep parameters may be nested. Parameters that contain themselves exceed it.
const maxDepth = 1000

// Values returns a deep copy of parameters that consists of maps with string keys, lists
// and scalars, and is never nil. Integers become int64, so that templates can compare them.
func Values(parameters types.Unstructurable) (values map[string]any, err error) {
	if parameters == nil {
		return map[string]any{}, nil
	}
	copied, err := clone(parameters.ToUnstructured(), 0)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if values, _ = copied.(map[string]any); values == nil {
		values = map[string]any{}
	}
	return values, nil
}

// errNotFinite is about a number that neither JSON nor YAML can hold.
var errNotFinite = errors.New("it is no finite number")

func clone(value any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("they are nested deeper than %d levels, or contain themselves", maxDepth)
	}
	switch value := value.(type) {
	case nil, string, bool, int64:
		return value, nil
	case map[string]any:
		copied := make(map[string]any, len(value))
		for key, item := range value {
			c, err := clone(item, depth+1)
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
			c, err := clone(item, depth+1)
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
	case v.CanFloat() && (math.IsNaN(v.Float()) || math.IsInf(v.Float(), 0)):
		return nil, errNotFinite
	case v.CanFloat():
		return v.Float(), nil
	}
	// Any other value gets the form that it has in JSON.
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var copied any
	err = utiljson.Unmarshal(data, &copied)
	return copied, err
}
