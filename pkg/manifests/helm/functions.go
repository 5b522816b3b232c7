// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"errors"
	"maps"
	"reflect"
	"regexp"
	"text/template"

	"github.com/Masterminds/sprig/v3"

	"github.com/corbel-run/corbel/pkg/manifests/internal/lookup"
	"github.com/corbel-run/corbel/pkg/manifests/internal/metered"
)

// library are the functions of sprig that Helm leaves to charts.
var library = func() template.FuncMap {
	functions := template.FuncMap(sprig.GenericFuncMap())
	delete(functions, "env")
	delete(functions, "expandenv")
	return functions
}()

// functions are those that are the same for every rendering.
var functions = func() template.FuncMap {
	all := maps.Clone(library)
	for _, part := range []template.FuncMap{codecs, durations, metered.Builtin(), metered.Ordered()} {
		maps.Copy(all, part)
	}
	all["required"] = required
	all["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	all["getHostByName"] = func(string) (string, error) {
		return "", errors.New("it is not available: templates cannot use the network")
	}
	all["lookup"] = lookup.Function(nothingFound)
	return all
}()

func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(message)
	}
	return value, nil
}

// nothingFound is lookup where it is switched off, as in helm template.
func nothingFound(string, string, string, string) (map[string]any, error) {
	return map[string]any{}, nil
}

// functionsFor returns the functions for one rendering.
func functionsFor(meter *metered.Meter, find lookup.Function) template.FuncMap {
	all := maps.Clone(functions)
	for name, f := range meter.Bounded(library) {
		// Charts that Helm refuses, because they count with the wrong kind of
		// number, are refused here.
		all[name] = as(reflect.TypeOf(functions[name]), reflect.ValueOf(f))
	}
	all["regexMatch"] = matching(all["regexMatch"].(func(string, string) bool))
	all["lookup"] = find
	return all
}

// matching lets an expression that does not parse match nothing, as in Helm.
func matching(match func(pattern, text string) bool) func(pattern, text string) bool {
	const short = 1 << 10
	return func(pattern, text string) bool {
		if len(pattern) <= short {
			if _, err := regexp.Compile(pattern); err != nil {
				return false
			}
		}
		return match(pattern, text)
	}
}

// as gives a function the type of another one, which has the same number of
// parameters. Its error ends the template.
func as(wanted reflect.Type, f reflect.Value) any {
	if f.Type() == wanted {
		return f.Interface()
	}
	call := f.Call
	if wanted.IsVariadic() {
		call = f.CallSlice
	}
	return reflect.MakeFunc(wanted, func(arguments []reflect.Value) []reflect.Value {
		for i, argument := range arguments {
			arguments[i] = convert(argument, f.Type().In(i))
		}
		results := call(arguments)
		if last := results[len(results)-1]; len(results) > wanted.NumOut() && !last.IsNil() {
			panic(last.Interface())
		}
		return results[:wanted.NumOut()]
	}).Interface()
}

// convert makes a list of numbers a list of anything, and so on.
func convert(value reflect.Value, wanted reflect.Type) reflect.Value {
	if value.Type() == wanted || wanted.Kind() != reflect.Slice {
		return value.Convert(wanted)
	}
	list := reflect.MakeSlice(wanted, value.Len(), value.Len())
	for i := range value.Len() {
		list.Index(i).Set(value.Index(i))
	}
	return list
}
