// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"errors"
	"fmt"
	"math"

	celtypes "cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// maxValueDepth limits how deep the result of an expression may be nested.
//
// Unit: levels
// Limit: the nesting of the result of an expression.
const maxValueDepth = 200

// nativeOf converts the result of an expression to JSON types.
func nativeOf(value ref.Val, depth int) (any, error) {
	if depth > maxValueDepth {
		return nil, fmt.Errorf("the expression gives something nested deeper than %d levels", maxValueDepth)
	}
	switch value := value.(type) {
	case celtypes.Bool:
		return bool(value), nil
	case celtypes.Int:
		return int64(value), nil
	case celtypes.Uint:
		if uint64(value) > math.MaxInt64 {
			return nil, errors.New("the expression gives a number that is too large")
		}
		return int64(value), nil
	case celtypes.Double:
		if number := float64(value); math.IsNaN(number) || math.IsInf(number, 0) {
			return nil, errors.New("the expression gives a number that JSON cannot hold")
		}
		return float64(value), nil
	case celtypes.String:
		return string(value), nil
	case celtypes.Null:
		return nil, nil
	case traits.Mapper:
		return mapOf(value, depth)
	case traits.Lister:
		list := []any{}
		for i := value.Iterator(); i.HasNext() == celtypes.True; {
			item, err := nativeOf(i.Next(), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		return list, nil
	default:
		return nil, fmt.Errorf("the expression gives a value of type %s, which an object cannot hold", value.Type().TypeName())
	}
}

func mapOf(value traits.Mapper, depth int) (any, error) {
	result := map[string]any{}
	for i := value.Iterator(); i.HasNext() == celtypes.True; {
		key := i.Next()
		name, ok := key.(celtypes.String)
		if !ok {
			return nil, fmt.Errorf("the expression gives a map with a key of type %s, want strings", key.Type().TypeName())
		}
		item, err := nativeOf(value.Get(key), depth+1)
		if err != nil {
			return nil, err
		}
		result[string(name)] = item
	}
	return result, nil
}
