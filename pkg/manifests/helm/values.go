// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/metered"
	"github.com/corbel-run/corbel/pkg/types"
)

// valuesOf returns the parameters as Helm would have read them from a file with
// values: every number is a float64.
func valuesOf(parameters types.Unstructurable) (values map[string]any, err error) {
	if parameters == nil {
		return map[string]any{}, nil
	}
	defer func() {
		if value := recover(); value != nil {
			err = &manifests.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	copied, err := metered.Copy(parameters.ToUnstructured())
	if err != nil {
		return nil, err
	}
	if values, _ = copied.(map[string]any); values == nil {
		return map[string]any{}, nil
	}
	_, err = float(values, "")
	return values, err
}

// maxWhole is the largest number up to which a float64 tells all whole numbers
// apart.
const maxWhole = 1 << 53

// float makes all numbers float64, in place. The path is for errors.
func float(value any, path string) (any, error) {
	var errs []error
	switch value := value.(type) {
	case int64:
		if value > maxWhole || value < -maxWhole {
			return nil, fmt.Errorf("%s: Helm cannot keep a whole number of more than 53 bits; make it a string", path[min(1, len(path)):])
		}
		return float64(value), nil
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			item, err := float(value[key], path+"."+key)
			value[key] = item
			errs = append(errs, err)
		}
	case []any:
		for i := range value {
			item, err := float(value[i], fmt.Sprintf("%s[%d]", path, i))
			value[i] = item
			errs = append(errs, err)
		}
	}
	return value, errors.Join(errs...)
}
