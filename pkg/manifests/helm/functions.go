// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"text/template"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

// functions are the functions that are the same for every rendering. Helm's engine does not export
// its own: functions that charts call often are written again here, as short as they are there, and
// the rest is called through an engine.
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

// fromYaml refuses a text with aliases that expand to too much: the parser expands all of
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

const (
	// maxPattern limits the length of a pattern of Files.Glob, and maxParts how many parts
	// follow each other in it: Helm's matcher compares all ranges of them.
	//
	// Limit: a pattern of Files.Glob in a chart.
	maxPattern = 1 << 10
	maxParts   = 64
	// maxPlaces limits in how many ways a pattern may be matched with the names of the files,
	// all of which Helm's matcher tries at worst.
	maxPlaces = 1 << 26
)

// checkPattern refuses a pattern of Files.Glob that takes very long: nothing can interrupt
// the matcher.
func checkPattern(pattern string, c *chart.Chart) error {
	if len(pattern) > maxPattern {
		return &excess.Error{Message: fmt.Sprintf("the pattern is longer than %d bytes", maxPattern)}
	}
	shape := (&patternText{text: pattern}).sequence(0)
	if shape.parts > maxParts {
		return &excess.Error{Message: fmt.Sprintf("the pattern has more than %d parts one after the other", maxParts)}
	}
	if placesIn(c, shape) > maxPlaces {
		return &excess.Error{Message: fmt.Sprintf("the pattern has too many wildcards for the names of the files: %d one after the other", shape.wild)}
	}
	return nil
}

// patternShape holds the properties of a pattern that decide about the time for matching it.
type patternShape struct {
	// parts are the texts, wildcards, ranges and lists of alternatives that follow each other at
	// most, and wild the ones that match texts of different lengths.
	parts, wild int
	// choices is in how many ways alternatives can be chosen.
	choices float64
	// length is the length of the texts that the pattern matches, or -1 if it is not the same for
	// all.
	length int
}

// then appends the next shape.
func (s *patternShape) then(next patternShape) {
	s.parts, s.wild, s.choices = s.parts+next.parts, s.wild+next.wild, s.choices*next.choices
	if s.length += next.length; next.length < 0 {
		s.length = math.MinInt32
	}
}

// placesIn estimates in how many ways a pattern may be matched with the names of the files of
// a chart and its sub-charts.
func placesIn(c *chart.Chart, shape patternShape) (places float64) {
	for _, file := range c.Files {
		ways := shape.choices
		for i := range shape.wild {
			ways *= float64(len(file.Name)+shape.wild-i) / float64(i+1)
		}
		places += ways
	}
	for _, dependency := range c.Dependencies() {
		places += placesIn(dependency, shape)
	}
	return places
}

// patternText is a pattern of Files.Glob that is being read.
type patternText struct {
	text string
	at   int
}

// sequence reads a pattern or, in braces, one of the alternatives.
func (p *patternText) sequence(depth int) patternShape {
	shape := patternShape{choices: 1}
	for inText := false; p.at < len(p.text); p.at++ {
		c := p.text[p.at]
		if depth > 0 && (c == ',' || c == '}') {
			return shape
		}
		part := patternShape{parts: 1, choices: 1, length: 1}
		wasText := inText
		switch inText = false; c {
		case '*':
			part.wild, part.length = 1, -1
			if strings.HasPrefix(p.text[p.at:], "**") {
				p.at++
			}
		case '[':
			if end := strings.IndexByte(p.text[p.at:], ']'); end > 0 {
				p.at += end
			}
		case '{':
			part = p.alternatives(depth)
		case '?':
		default:
			if inText = true; wasText {
				part.parts = 0
			}
			if c == '\\' {
				p.at++
			}
		}
		shape.then(part)
	}
	return shape
}

// alternatives reads a list in braces, up to its end.
func (p *patternText) alternatives(depth int) patternShape {
	all := patternShape{parts: 1}
	for first := true; p.at < len(p.text) && (first || p.text[p.at] == ','); first = false {
		p.at++
		one := p.sequence(depth + 1)
		if first {
			all.length = one.length
		}
		if one.length != all.length || one.length < 0 {
			all.length = -1
		}
		all.parts, all.wild, all.choices = max(all.parts, one.parts), max(all.wild, one.wild), all.choices+one.choices
	}
	if all.length < 0 {
		all.wild++
	}
	return all
}
