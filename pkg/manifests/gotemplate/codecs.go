// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"text/template"

	"go.yaml.in/yaml/v3"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/metered"
)

// codecs turn values into YAML and JSON and back. As in Helm, those without
// "must" do not fail: they return an empty text, or put the error into the
// result.
var codecs = template.FuncMap{
	"toYaml":            lenient(toYaml),
	"mustToYaml":        toYaml,
	"toYamlPretty":      lenient(toYamlPretty),
	"toJson":            lenient(toJSON),
	"mustToJson":        toJSON,
	"fromYaml":          orError(fromYaml[map[string]any]),
	"mustFromYaml":      fromYaml[any],
	"fromYamlArray":     orErrorItem(fromYaml[[]any]),
	"mustFromYamlArray": fromYaml[[]any],
	"fromJson":          orError(fromJSON[map[string]any]),
	"mustFromJson":      fromJSON[any],
	"fromJsonArray":     orErrorItem(fromJSON[[]any]),
	"mustFromJsonArray": fromJSON[[]any],
}

func toYaml(value any) (string, error) {
	data, err := sigsyaml.Marshal(value)
	return strings.TrimSuffix(string(document.Quoted(data)), "\n"), err
}

// toYamlPretty indents lists, too.
func toYamlPretty(value any) (string, error) {
	plain, err := metered.Copy(value)
	if err != nil {
		return "", err
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := errors.Join(encoder.Encode(plain), encoder.Close()); err != nil {
		return "", err
	}
	return strings.TrimSuffix(string(document.Quoted(text.Bytes())), "\n"), nil
}

func toJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}

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

func lenient(encode func(any) (string, error)) func(any) string {
	return func(value any) string {
		text, err := encode(value)
		if err != nil {
			return ""
		}
		return text
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
