// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

const (
	// maxWhole is the largest number up to which a float64 distinguishes all whole
	// numbers.
	maxWhole = 1 << 53
	// maxNumbers limits how many numbers are reported that Helm cannot keep.
	maxNumbers = 10
)

// makeFloats makes all numbers of the values float64, in place, as Helm would have read
// them from a file with values.
func makeFloats(values map[string]any) error {
	_, changed := float(values)
	var errs []error
	for _, path := range changed[:min(len(changed), maxNumbers)] {
		errs = append(errs, fmt.Errorf("parameters: %s: Helm cannot keep a whole number of more than 53 bits; make it a string", strings.TrimPrefix(path, ".")))
	}
	if len(changed) > maxNumbers {
		errs = append(errs, errors.New("parameters: there are more such numbers"))
	}
	return errors.Join(errs...)
}

// float returns the value with float64 in place of int64, and the paths of the first numbers that
// would change by that.
func float(value any) (floats any, changed []string) {
	note := func(key string, below []string) {
		for _, path := range below[:min(len(below), maxNumbers+1-len(changed))] {
			changed = append(changed, key+path)
		}
	}
	switch value := value.(type) {
	case int64:
		if value > maxWhole || value < -maxWhole {
			return value, []string{""}
		}
		return float64(value), nil
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			item, below := float(value[key])
			value[key] = item
			note("."+key, below)
		}
	case []any:
		for i, item := range value {
			item, below := float(item)
			value[i] = item
			note(fmt.Sprintf("[%d]", i), below)
		}
	}
	return value, changed
}

// chartValues are the values of a chart, or all data of a template, with the methods that they have
// in Helm. YAML refuses values that may be nested deeper than the stack of its encoder reaches.
type chartValues map[string]any

// guarded changes and returns the data of a template.
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

// Helm's merge of values warns about conflicts through the standard logger, and prints the value
// that it drops, which may come from a Secret. So it gets to see values that do not print: they are
// of the same kinds, which is all that it asks for. Tables and nulls stay as they are, because it
// asks for their types. So do booleans, which switch sub-charts on and off, and are no secret.
type (
	maskedText   string
	maskedNumber float64
	maskedList   []any
)

// mask is printed in place of a value.
const mask = "<hidden>"

func hide(state fmt.State) { _, _ = io.WriteString(state, mask) }

func (maskedText) Format(state fmt.State, _ rune) { hide(state) }

func (maskedNumber) Format(state fmt.State, _ rune) { hide(state) }

func (maskedList) Format(state fmt.State, _ rune) { hide(state) }

// masked returns a copy of the table with values that do not print.
func masked(table map[string]any) map[string]any {
	if table == nil {
		return nil
	}
	copied := make(map[string]any, len(table))
	for key, value := range table {
		switch value := value.(type) {
		case map[string]any:
			copied[key] = masked(value)
		case []any:
			copied[key] = maskedList(runtime.DeepCopyJSONValue(value).([]any))
		case string:
			copied[key] = maskedText(value)
		case float64:
			copied[key] = maskedNumber(value)
		default:
			copied[key] = value
		}
	}
	return copied
}

// unmask restores the values of the table, in place.
func unmask(table map[string]any) {
	for key, value := range table {
		switch value := value.(type) {
		case map[string]any:
			unmask(value)
		case maskedList:
			table[key] = []any(value)
		case maskedText:
			table[key] = string(value)
		case maskedNumber:
			table[key] = float64(value)
		}
	}
}
