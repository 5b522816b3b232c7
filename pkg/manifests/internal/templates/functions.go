// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/corbel-run/corbel/internal/document"
)

// Functions returns the functions that all templates have: the functions of sprig, the printing
// functions of text/template, and required and toYaml as in Helm. They have no guard yet.
func Functions() template.FuncMap {
	functions := sprig.TxtFuncMap()
	maps.Copy(functions, template.FuncMap{
		"html": template.HTMLEscaper, "js": template.JSEscaper, "urlquery": template.URLQueryEscaper,
		"print": fmt.Sprint, "println": fmt.Sprintln, "printf": fmt.Sprintf,
		"toYaml": lenient(toYaml), "mustToYaml": toYaml, "toYamlPretty": lenient(toYamlPretty),
		"eq": equal, "ne": func(first, other any) (bool, error) {
			same, err := equal(first, other)
			return !same, err
		},
		"required": required, "keys": sortedKeys, "values": sortedValues,
		"getHostByName": Refuse("getHostByName", "templates cannot use the network"),
	})
	return functions
}

// ago is how long ago a date is, in seconds, as the function of sprig has it.
func ago(date any, now time.Time) string {
	then := now
	switch date := date.(type) {
	case time.Time:
		then = date
	case int64:
		then = time.Unix(date, 0)
	case int:
		then = time.Unix(int64(date), 0)
	}
	return now.Sub(then).Round(time.Second).String()
}

// Refuse returns a function that fails. An empty result in its place would go unnoticed.
func Refuse(name, reason string) func(...any) (string, error) {
	return func(...any) (string, error) {
		return "", fmt.Errorf("%s is not available: %s", name, reason)
	}
}

// required returns the value, or fails with the message if there is none.
func required(message string, value any) (any, error) {
	if value == nil || value == "" {
		return nil, errors.New(message)
	}
	return value, nil
}

// equal is eq of text/template, but errors of text/template print values that cannot be compared:
// these may be secret, or contain themselves.
func equal(first any, others ...any) (bool, error) {
	if len(others) == 0 {
		return false, errors.New("missing argument for comparison")
	}
	for _, other := range others {
		same, err := equalValues(reflect.ValueOf(first), reflect.ValueOf(other))
		if same || err != nil {
			return same, err
		}
	}
	return false, nil
}

func equalValues(a, b reflect.Value) (bool, error) {
	switch {
	case !a.IsValid(), !b.IsValid(), a.Kind() == b.Kind() && (isNil(a) || isNil(b)):
		return isNil(a) == isNil(b), nil
	case a.CanInt() && b.CanInt():
		return a.Int() == b.Int(), nil
	case a.CanUint() && b.CanUint():
		return a.Uint() == b.Uint(), nil
	case a.CanInt() && b.CanUint():
		return a.Int() >= 0 && uint64(a.Int()) == b.Uint(), nil
	case a.CanUint() && b.CanInt():
		return equalValues(b, a)
	case a.CanFloat() && b.CanFloat():
		return a.Float() == b.Float(), nil
	case a.Kind() == reflect.String && b.Kind() == reflect.String:
		return a.String() == b.String(), nil
	case a.Kind() == b.Kind() && a.Type().Comparable() && b.Type().Comparable():
		return a.Equal(b), nil
	}
	return false, fmt.Errorf("incompatible types for comparison: %s and %s", a.Type(), b.Type())
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Chan, reflect.Func, reflect.Map, reflect.Pointer, reflect.Slice:
		return v.IsNil()
	}
	return false
}

// sortedKeys returns the keys of the maps, map by map, in their order. The order of the
// function of sprig changes from call to call, and so would the manifests.
func sortedKeys(dicts ...map[string]any) []string {
	keys := []string{}
	for _, dict := range dicts {
		keys = append(keys, slices.Sorted(maps.Keys(dict))...)
	}
	return keys
}

// sortedValues returns the values in the order of their keys.
func sortedValues(dict map[string]any) []any {
	values := make([]any, 0, len(dict))
	for _, key := range sortedKeys(dict) {
		values = append(values, dict[key])
	}
	return values
}

func toYaml(value any) (string, error) {
	data, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(document.Quoted(data)), "\n"), err
}

// toYamlPretty indents lists, too.
func toYamlPretty(value any) (string, error) {
	var text bytes.Buffer
	encoder := goyaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(string(document.Quoted(text.Bytes())), "\n"), err
}

// lenient returns an encoder that gives an empty text where the other one fails, as in
// Helm.
func lenient(encode func(any) (string, error)) func(any) string {
	return func(value any) string {
		text, err := encode(value)
		if err != nil {
			return ""
		}
		return text
	}
}
