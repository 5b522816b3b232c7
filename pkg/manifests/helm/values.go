// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
	"github.com/corbel-run/corbel/pkg/types"
)

// valuesOf returns the parameters as Helm would have read them from a file with
// values: every number is a float64.
func valuesOf(parameters types.Unstructurable) (map[string]any, error) {
	values, err := convert.Values(parameters)
	if err != nil {
		return nil, err
	}
	if _, err := float(values, ""); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	return values, nil
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

// chartValues are the values of a chart, or all that a template sees, with the methods that
// they have in Helm. YAML refuses what may be nested deeper than the stack of its encoder
// reaches.
type chartValues map[string]any

// guarded returns what a template sees, which it changes.
func guarded(dot map[string]any) chartValues {
	if values, ok := dot["Values"].(common.Values); ok {
		dot["Values"] = chartValues(values)
	}
	charts, _ := dot["Subcharts"].(map[string]any)
	for _, seen := range charts {
		if seen, ok := seen.(map[string]any); ok {
			guarded(seen)
		}
	}
	return dot
}

// AsMap returns the values.
func (v chartValues) AsMap() map[string]any { return common.Values(v).AsMap() }

// Table returns the table at a path.
func (v chartValues) Table(path string) (chartValues, error) {
	table, err := common.Values(v).Table(path)
	return chartValues(table), err
}

// PathValue returns the value at a path.
func (v chartValues) PathValue(path string) (any, error) { return common.Values(v).PathValue(path) }

// YAML returns the values as YAML.
func (v chartValues) YAML() (string, error) {
	if err := templates.CheckDepth(v); err != nil {
		return "", err
	}
	return common.Values(v).YAML()
}
