// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"fmt"
	"maps"
	"text/template"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

// functions are the functions that are the same for every rendering. The decoders make whole
// numbers int64, where the decoders of sprig make every number a float64. As in Helm, decoders
// without "must" do not fail: they put the error into the result.
var functions = func() template.FuncMap {
	all := templates.Functions()
	maps.Copy(all, template.FuncMap{
		"env":       templates.Refuse("env", "templates cannot read the environment"),
		"expandenv": templates.Refuse("expandenv", "templates cannot read the environment"),

		"fromYaml":          orError(fromYaml[map[string]any]),
		"mustFromYaml":      fromYaml[any],
		"fromYamlArray":     orErrorItem(fromYaml[[]any]),
		"mustFromYamlArray": fromYaml[[]any],
		"fromJson":          orError(fromJSON[map[string]any]),
		"mustFromJson":      fromJSON[any],
		"fromJsonArray":     orErrorItem(fromJSON[[]any]),
		"mustFromJsonArray": fromJSON[[]any],
	})
	return all
}()

// fromYaml reads one document; an empty one is the zero value.
func fromYaml[T any](text string) (T, error) {
	value, err := document.Value([]byte(text))
	return as[T](value, err)
}

func fromJSON[T any](text string) (T, error) {
	var value any
	err := utiljson.Unmarshal([]byte(text), &value)
	return as[T](value, err)
}

func as[T any](value any, err error) (T, error) {
	result, ok := value.(T)
	if err == nil && value != nil && !ok {
		err = fmt.Errorf("want %s, got %s", nameOf(any(result)), nameOf(value))
	}
	return result, err
}

func nameOf(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	default:
		return "a scalar"
	}
}

func orError(decode func(string) (map[string]any, error)) func(string) map[string]any {
	return func(text string) map[string]any {
		value, err := decode(text)
		if err != nil {
			return map[string]any{"Error": err.Error()}
		}
		if value == nil {
			return map[string]any{}
		}
		return value
	}
}

func orErrorItem(decode func(string) ([]any, error)) func(string) []any {
	return func(text string) []any {
		value, err := decode(text)
		if err != nil {
			return []any{err.Error()}
		}
		return value
	}
}
