// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"fmt"
	"reflect"
	"slices"
)

// Sum is a digest that is itself part of the digested value.
type Sum string

// Digest returns the digest.
func (s Sum) Digest() string { return string(s) }

// OfValues returns one digest for texts and options, which begins with a plus. Empty and unexported
// fields do not count. Functions and values behind interfaces, which may be keys, count by being
// there, or by their method Digest.
func OfValues(values ...any) Sum {
	parts := make([]string, len(values))
	for i, value := range values {
		parts[i] = ofValue(reflect.ValueOf(value))
	}
	return Sum("+" + Combine(parts...))
}

func ofValue(v reflect.Value) string {
	if !v.IsValid() || v.IsZero() {
		return ""
	}
	parts := []string{"present"}
	if digester, ok := v.Interface().(interface{ Digest() string }); ok {
		return Combine("digest", digester.Digest())
	}
	switch v.Kind() {
	case reflect.Func, reflect.Interface:
	case reflect.Pointer:
		parts = append(parts, ofValue(v.Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && !v.Field(i).IsZero() {
				parts = append(parts, field.Name, ofValue(v.Field(i)))
			}
		}
	case reflect.Map:
		for key, value := range v.Seq2() {
			parts = append(parts, Combine(ofValue(key), ofValue(value)))
		}
		slices.Sort(parts)
	case reflect.Slice:
		for i := range v.Len() {
			parts = append(parts, ofValue(v.Index(i)))
		}
	default:
		return fmt.Sprint(v)
	}
	return Combine(parts...)
}
