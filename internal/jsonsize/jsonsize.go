// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package jsonsize

import (
	"encoding/json"
	"reflect"
	"strconv"
	"unicode/utf8"
)

// MaxDepth is the nesting up to which values are measured. A value that is nested
// deeper, or that contains itself, exceeds every limit.
const MaxDepth = 500

// Of returns the size of the value in bytes, as encoding/json writes it. It is exact
// for the values that a JSON decoder returns and an estimate for other types. The
// count ends once it exceeds the limit; the result is larger than the limit then.
func Of(value any, limit int) int {
	c := &counter{limit: limit}
	c.value(value, 0)
	return c.size
}

type counter struct{ size, limit int }

// add reports whether the count goes on.
func (c *counter) add(bytes int) bool {
	c.size += bytes
	return c.size <= c.limit
}

// exceed ends the count.
func (c *counter) exceed() bool {
	c.size = max(c.size, c.limit+1)
	return false
}

func (c *counter) value(value any, depth int) bool {
	if depth > MaxDepth {
		return c.exceed()
	}
	switch v := value.(type) {
	case nil:
		return c.add(len("null"))
	case string:
		return c.text(v)
	case bool:
		return c.add(len(strconv.FormatBool(v)))
	case int64:
		return c.add(digits(v))
	case float64:
		number, _ := json.Marshal(v)
		return c.add(len(number))
	case map[string]any:
		c.add(2 + max(0, len(v)-1))
		for key, element := range v {
			if !c.text(key) || !c.add(1) || !c.value(element, depth+1) {
				return false
			}
		}
		return c.size <= c.limit
	case []any:
		c.add(2 + max(0, len(v)-1))
		for _, element := range v {
			if !c.value(element, depth+1) {
				return false
			}
		}
		return c.size <= c.limit
	default:
		return c.reflected(reflect.ValueOf(value), depth)
	}
}

// reflected measures a value of any other type. Fields that are empty count nothing.
func (c *counter) reflected(v reflect.Value, depth int) bool {
	if depth > MaxDepth {
		return c.exceed()
	}
	switch v.Kind() {
	case reflect.String:
		return c.text(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || c.reflected(v.Elem(), depth+1)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return c.add(2 + (v.Len()+2)/3*4)
		}
		for i := range v.Len() {
			if !c.add(1) || !c.reflected(v.Index(i), depth+1) {
				return false
			}
		}
		return c.add(1)
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			if !c.add(2) || !c.reflected(entries.Key(), depth+1) || !c.reflected(entries.Value(), depth+1) {
				return false
			}
		}
		return c.add(1)
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Field(i); !field.IsZero() {
				if !c.add(len(v.Type().Field(i).Name)+4) || !c.reflected(field, depth+1) {
					return false
				}
			}
		}
		return c.add(2)
	default:
		return c.add(4)
	}
}

// escaped is how many bytes a character below utf8.RuneSelf takes in a JSON string.
var escaped = func() (sizes [utf8.RuneSelf]uint8) {
	for i := range sizes {
		switch {
		case i == '"', i == '\\', i == '\b', i == '\f', i == '\n', i == '\r', i == '\t':
			sizes[i] = 2
		case i < ' ', i == '<', i == '>', i == '&':
			sizes[i] = 6
		default:
			sizes[i] = 1
		}
	}
	return sizes
}()

func (c *counter) text(text string) bool {
	size := 2
	for i := 0; i < len(text); {
		if b := text[i]; b < utf8.RuneSelf {
			size += int(escaped[b])
			i++
			continue
		}
		r, length := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && length == 1 || r == '\u2028' || r == '\u2029' {
			size += 6
		} else {
			size += length
		}
		i += length
	}
	return c.add(size)
}

func digits(v int64) int {
	var buffer [20]byte
	return len(strconv.AppendInt(buffer[:0], v, 10))
}
