// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"reflect"
	"text/template"
)

// class says how a function is guarded.
type class int

const (
	// walks is a function that may look at all of its arguments and returns
	// something new, of a size in proportion to them.
	walks class = iota
	// makes is a function that does not look into its arguments, but returns
	// something new.
	makes
	// picks is a function that returns one of its arguments, a part of one, or
	// something small.
	picks
)

// classes are the functions that do not walk.
var classes = map[string]class{
	"list": makes, "tuple": makes, "dict": makes, "append": makes, "mustAppend": makes, "push": makes, "mustPush": makes,
	"prepend": makes, "mustPrepend": makes, "rest": makes, "mustRest": makes, "initial": makes, "mustInitial": makes,
	"reverse": makes, "mustReverse": makes, "compact": makes, "mustCompact": makes, "concat": makes, "chunk": makes, "mustChunk": makes,
	"keys": makes, "values": makes, "pick": makes, "omit": makes, "pluck": makes, "lookup": makes,

	"get": picks, "set": picks, "unset": picks, "hasKey": picks, "dig": picks, "first": picks, "mustFirst": picks, "last": picks, "mustLast": picks,
	"slice": picks, "mustSlice": picks, "default": picks, "coalesce": picks, "ternary": picks, "empty": picks, "all": picks, "any": picks,
	"required": picks, "kindOf": picks, "kindIs": picks, "typeOf": picks, "typeIs": picks, "typeIsLike": picks,
}

// guarded returns the functions with their guards. A guard ends the template by
// a panic with an error, which text/template turns into an error of the call.
func (m *Meter) guarded(functions template.FuncMap) template.FuncMap {
	guarded := make(template.FuncMap, len(functions))
	for name, f := range functions {
		guarded[name] = m.guard(reflect.ValueOf(f), classes[name])
	}
	return guarded
}

func (m *Meter) guard(f reflect.Value, c class) any {
	call := f.Call
	if f.Type().IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(f.Type(), func(arguments []reflect.Value) []reflect.Value {
		must(m.interrupted())
		if c == walks {
			_, err := m.measure(arguments...)
			must(err)
		}
		results := call(arguments)
		if c != picks && len(results) > 0 {
			must(m.account(results[0]))
		}
		return results
	}).Interface()
}

// account counts a result of a function, but not what it contains: this was
// there before.
func (m *Meter) account(result reflect.Value) error {
	for result.Kind() == reflect.Interface && !result.IsNil() {
		result = result.Elem()
	}
	bytes := int64(itemBytes)
	switch kind := result.Kind(); {
	case kind == reflect.String, kind == reflect.Slice && result.Type().Elem().Kind() == reflect.Uint8:
		bytes = int64(result.Len())
		if err := m.text(bytes); err != nil {
			return err
		}
	case kind == reflect.Slice, kind == reflect.Map:
		if err := m.items(int64(result.Len())); err != nil {
			return err
		}
		bytes = itemBytes * int64(result.Len())
	}
	return m.spend(bytes)
}

// must ends the call of a template function.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
