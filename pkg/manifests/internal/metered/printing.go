// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"text/template"
)

// printing are the functions that rewrite puts into templates to print values.
func (m *Meter) printing() template.FuncMap {
	return template.FuncMap{
		printName: m.print,
		tickName:  func() (string, error) { return "", m.interrupted() },
	}
}

// print returns a value as text/template prints it, but for a value that does
// not exist.
func (m *Meter) print(value any) (string, error) {
	if err := m.interrupted(); err != nil {
		return "", err
	}
	switch value := value.(type) {
	case nil:
		return m.nothing, nil
	case string:
		return value, nil
	case bool, int, int64, float64:
		return fmt.Sprint(value), nil
	}
	v := reflect.ValueOf(value)
	if v.Kind() == reflect.Pointer && !isPrinter(value) {
		if v.IsNil() {
			return m.nothing, nil
		}
		v = v.Elem()
		value = v.Interface()
	}
	if v.Kind() == reflect.Struct && !isPrinter(value) {
		// text/template calls the methods of the pointer, too.
		pointer := reflect.New(v.Type())
		pointer.Elem().Set(v)
		if isPrinter(pointer.Interface()) {
			value = pointer.Interface()
		}
	}
	if kind := v.Kind(); kind == reflect.Func || kind == reflect.Chan {
		return "", fmt.Errorf("a value of type %T cannot be printed", value)
	}
	if _, err := m.measure(v); err != nil {
		return "", err
	}
	return fmt.Sprint(value), nil
}

func isPrinter(value any) bool {
	switch value.(type) {
	case error, fmt.Stringer:
		return true
	}
	return false
}

// printf refuses what could become too large, by a generous estimate: every
// verb may print the largest argument, each of its items as wide as the widest
// number in the format says.
func (m *Meter) printf(format string, arguments ...any) (string, error) {
	widest := widestIn(format)
	var bytes, values int64
	for _, argument := range arguments {
		s, err := m.measure(reflect.ValueOf(&argument))
		if err != nil {
			return "", err
		}
		bytes, values = max(bytes, s.bytes), max(values, s.values)
		if number, err := whole(argument); err == nil && strings.Contains(format, "*") {
			// It may be the width of another one, and negative.
			widest = max(widest, int64(number), -int64(max(number, -math.MaxInt)))
		}
	}
	largest := sum(bytes, product(sum(values, 1), widest))
	if err := m.text(sum(int64(len(format)), product(int64(strings.Count(format, "%")), largest))); err != nil {
		return "", err
	}
	return fmt.Sprintf(format, arguments...), nil
}

// widestIn returns the largest number in a format.
func widestIn(format string) int64 {
	var widest, current int64
	for _, c := range []byte(format) {
		if c < '0' || c > '9' {
			current = 0
			continue
		}
		current = min(current*10+int64(c-'0'), 1<<40)
		widest = max(widest, current)
	}
	return widest
}
