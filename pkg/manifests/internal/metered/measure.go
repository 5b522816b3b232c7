// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"reflect"
)

const (
	// maxValueDepth limits how deep a value may be nested that is written or
	// walked by a function. Values that contain themselves exceed it.
	maxValueDepth = 1000
	// itemBytes is roughly what an item of a list or a map takes.
	itemBytes = 16
)

// size is what a value takes when it is written.
type size struct{ bytes, values int64 }

// measure returns the size of values, or fails when they are too large or too
// deep to be walked: templates can build values that contain themselves, or the
// same value so many times that no memory would hold the text.
func (m *Meter) measure(values ...reflect.Value) (size, error) {
	var total size
	for _, value := range values {
		if err := m.add(&total, value, 0); err != nil {
			return total, err
		}
	}
	return total, nil
}

func (m *Meter) add(total *size, v reflect.Value, depth int) error {
	if depth > maxValueDepth {
		return Exceeded("a value is nested deeper than %d levels, or contains itself", maxValueDepth)
	}
	total.bytes += itemBytes
	total.values++
	switch v.Kind() {
	case reflect.String:
		total.bytes += int64(v.Len())
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			total.bytes += int64(v.Len())
			break
		}
		for i := range v.Len() {
			if err := m.add(total, v.Index(i), depth+1); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if err := m.add(total, entries.Key(), depth+1); err != nil {
				return err
			}
			if err := m.add(total, entries.Value(), depth+1); err != nil {
				return err
			}
		}
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			total.bytes -= itemBytes
			return m.add(total, v.Elem(), depth+1)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if err := m.add(total, v.Field(i), depth+1); err != nil {
				return err
			}
		}
	}
	if total.bytes > m.limits.StringBytes {
		return Exceeded("a value takes more than %d bytes when it is written", m.limits.StringBytes)
	}
	return nil
}
