// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

// functions are those that are the same for every rendering. Helm's engine does not export
// its own: those that charts call often are written again here, as short as they are
// there, and the others are called through an engine.
var functions = func() template.FuncMap {
	all := templates.Functions()
	delete(all, "env")
	delete(all, "expandenv")
	maps.Copy(all, template.FuncMap{
		"fromYaml":      decodeMap(fromYaml),
		"fromYamlArray": decodeList(fromYaml),
		"fromJson":      decodeMap(fromJSON),
		"fromJsonArray": decodeList(fromJSON),
		"fromToml":      fromToml,
		"lookup":        nothingFound,
	})
	for _, name := range []string{
		"toToml", "mustToToml", "mustToDuration",
		"durationSeconds", "durationMilliseconds", "durationMicroseconds", "durationNanoseconds", "durationMinutes",
		"durationHours", "durationDays", "durationWeeks", "durationRoundTo", "durationTruncateTo",
	} {
		all[name] = byEngine(name)
	}
	return all
}()

// byEngine returns a function of Helm's engine.
func byEngine(name string) func(arguments ...any) (any, error) {
	return func(arguments ...any) (result any, err error) {
		var call strings.Builder
		for i := range arguments {
			fmt.Fprintf(&call, " (index .Values.arguments %d)", i)
		}
		e := engine.Engine{CustomTemplateFuncs: template.FuncMap{
			"_result": func(value any) string { result = value; return "" },
		}}
		_, err = e.RenderWithContext(context.Background(), &chart.Chart{
			Metadata:  &chart.Metadata{Name: name},
			Templates: []*common.File{{Name: "templates/call", Data: []byte("{{ _result (" + name + call.String() + ") }}")}},
		}, common.Values{"Values": map[string]any{"arguments": arguments}})
		if err != nil {
			return nil, errors.New(strings.TrimSpace(err.Error()))
		}
		return result, nil
	}
}

// nothingFound is lookup where it is switched off, as in helm template.
func nothingFound(string, string, string, string) (map[string]any, error) {
	return map[string]any{}, nil
}

// fromYaml refuses a text whose aliases expand to too much: the parser expands all of
// them, and tenants may write the text.
func fromYaml(text string, into any) error {
	if err := document.CheckAliases([]byte(text)); err != nil {
		return err
	}
	return yaml.Unmarshal([]byte(text), into)
}

func fromJSON(text string, into any) error { return json.Unmarshal([]byte(text), into) }

// fromToml refuses a text that may be nested deeper than the stack of its parser reaches,
// or has so many dotted keys that the parser, which keeps the whole path of each part of
// one, would take all memory.
func fromToml(text string) (any, error) {
	const (
		most     = 100_000
		mostDots = 4_000_000 // squared and summed: some 100 MiB
	)
	if strings.Count(text, "[")+strings.Count(text, "{") > most {
		return map[string]any{"Error": fmt.Sprintf("the text has more than %d brackets", most)}, nil
	}
	dots := 0
	for line := range strings.Lines(text) {
		n := min(strings.Count(line, "."), mostDots)
		if dots += n * n; dots > mostDots {
			return map[string]any{"Error": "the text has too many dots in a line, or too many lines with dots"}, nil
		}
	}
	return byEngine("fromToml")(text)
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
