// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"fmt"
	"io"
)

// Helm's merge of values warns about conflicts through the standard logger, and
// prints the value that it drops, which may come from a Secret. So it gets to see
// values that do not print: they are of the same kinds, which is all that it asks
// for. Tables and nulls stay what they are, because it asks for their types. So do
// booleans, which switch sub-charts on and off, and tell nothing.
type (
	veiledText   string
	veiledNumber float64
	veiledList   []any
)

// veil is printed in place of a value.
const veil = "<hidden>"

func hide(state fmt.State) { _, _ = io.WriteString(state, veil) }

// Format implements fmt.Formatter.
func (veiledText) Format(state fmt.State, _ rune) { hide(state) }

// Format implements fmt.Formatter.
func (veiledNumber) Format(state fmt.State, _ rune) { hide(state) }

// Format implements fmt.Formatter.
func (veiledList) Format(state fmt.State, _ rune) { hide(state) }

// veiled returns a copy of the table whose values do not print.
func veiled(table map[string]any) map[string]any {
	if table == nil {
		return nil
	}
	copied := make(map[string]any, len(table))
	for key, value := range table {
		switch value := value.(type) {
		case map[string]any:
			copied[key] = veiled(value)
		case []any:
			copied[key] = veiledList(cloneValue(value).([]any))
		case string:
			copied[key] = veiledText(value)
		case float64:
			copied[key] = veiledNumber(value)
		default:
			copied[key] = value
		}
	}
	return copied
}

// unveil makes the values of the table what they were, in place.
func unveil(table map[string]any) {
	for key, value := range table {
		switch value := value.(type) {
		case map[string]any:
			unveil(value)
		case veiledList:
			table[key] = []any(value)
		case veiledText:
			table[key] = string(value)
		case veiledNumber:
			table[key] = float64(value)
		}
	}
}
