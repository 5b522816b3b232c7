// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"encoding/json"
	"strings"
	"text/template"

	"github.com/BurntSushi/toml"
	"sigs.k8s.io/yaml"
	goyaml "sigs.k8s.io/yaml/goyaml.v3"

	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
)

// codecs are the functions of Helm that turn values into texts and back. They
// are here because those of Helm cannot be reached: a value that contains itself
// would be the end of the process there, and these are called through a guard.
var codecs = template.FuncMap{
	"toYaml":        lenient(toYaml),
	"mustToYaml":    toYaml,
	"toYamlPretty":  lenient(toYamlPretty),
	"fromYaml":      decodeMap(fromYaml),
	"fromYamlArray": decodeList(fromYaml),
	"toJson":        lenient(toJSON),
	"mustToJson":    toJSON,
	"fromJson":      decodeMap(func(text string, into any) error { return json.Unmarshal([]byte(text), into) }),
	"fromJsonArray": decodeList(func(text string, into any) error { return json.Unmarshal([]byte(text), into) }),
	"toToml":        toTomlOrError,
	"mustToToml":    toToml,
	"fromToml":      decodeMap(func(text string, into any) error { return toml.Unmarshal([]byte(text), into) }),
}

func toYaml(value any) (string, error) {
	data, err := yaml.Marshal(value)
	return strings.TrimSuffix(string(document.Quoted(data)), "\n"), err
}

func toYamlPretty(value any) (string, error) {
	var text bytes.Buffer
	encoder := goyaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(string(document.Quoted(text.Bytes())), "\n"), err
}

// fromYaml refuses a text whose aliases expand to too much: the parser expands all of
// them, and tenants may write the text.
func fromYaml(text string, into any) error {
	if err := document.CheckAliases([]byte(text)); err != nil {
		return err
	}
	return yaml.Unmarshal([]byte(text), into)
}

func toJSON(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}

func toToml(value any) (string, error) {
	var text bytes.Buffer
	err := toml.NewEncoder(&text).Encode(value)
	return text.String(), err
}

func toTomlOrError(value any) string {
	text, err := toToml(value)
	if err != nil {
		return err.Error()
	}
	return text
}

// lenient returns nothing where the encoder fails.
func lenient(encode func(any) (string, error)) func(any) string {
	return func(value any) string {
		text, err := encode(value)
		if err != nil {
			return ""
		}
		return text
	}
}

// decodeMap puts an error into the result.
func decodeMap(decode func(text string, into any) error) func(string) map[string]any {
	return func(text string) map[string]any {
		decoded := map[string]any{}
		if err := decode(text, &decoded); err != nil {
			decoded["Error"] = err.Error()
		}
		return decoded
	}
}

func decodeList(decode func(text string, into any) error) func(string) []any {
	return func(text string) []any {
		decoded := []any{}
		if err := decode(text, &decoded); err != nil {
			return []any{err.Error()}
		}
		return decoded
	}
}
