// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"errors"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

type version struct{ major, minor string }

func (v *version) String() string { return v.major + "." + v.minor }

// execute renders a text.
func execute(t *testing.T, text string, data any, options Options) (string, error) {
	t.Helper()
	functions := Functions()
	parser := NewParser("", "", functions)
	set := NewSet()
	if err := parser.Parse(set, "a", text, nil); err != nil {
		return "", err
	}
	options.Interrupted = t.Context().Err
	return NewRendering(set, parser, functions, options).Execute("a", data)
}

func TestValuesArePrintedAsTextTemplateDoes(t *testing.T) {
	data := map[string]any{"v": &struct{ V version }{version{"1", "33"}}, "copy": struct{ V version }{version{"1", "33"}}, "p": &version{"1", "34"}, "list": []any{1, "a"}, "f": 1e6}
	for text, want := range map[string]string{
		"{{ .p }}":                       "1.34",
		"{{ with .v }}{{ .V }}{{ end }}": "1.33",
		"{{ .copy.V }}":                  "{1 33}",
		"{{ .list }}|{{ .f }}":           "[1 a]|1e+06",
		"{{ .missing }}":                 "<no value>",
	} {
		if got, err := execute(t, text, data, Options{Nothing: "<no value>"}); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

// The parser calls itself for each level, so that a deep text must not get to it.
func TestADeepTextIsNotParsed(t *testing.T) {
	const levels = 5000
	deep := map[string]string{
		"blocks":                   strings.Repeat("{{if 1}}", levels) + strings.Repeat("{{end}}", levels),
		"blocks with trim markers": strings.Repeat("{{- if(1) -}}", levels) + strings.Repeat("{{- end -}}", levels),
		"else if":                  "{{if 1}}" + strings.Repeat("{{else if 1}}", levels) + "{{end}}",
		"else with":                "{{with 1}}" + strings.Repeat("{{ else with 1 }}", levels) + "{{end}}",
		"parentheses":              "{{" + strings.Repeat("(", levels) + "1" + strings.Repeat(")", levels) + "}}",
		"ends in comments":         strings.Repeat("{{if 1}}{{/* {{end}} */}}", levels) + strings.Repeat("{{end}}", levels),
		"ends in texts":            strings.Repeat("{{if 1}}{{\"{{end}}\"}}{{`{{end}}`}}{{'\"'}}", levels) + strings.Repeat("{{end}}", levels),
		"quoted quotes":            strings.Repeat(`{{if "\"}}{{end}}"}}`, levels) + strings.Repeat("{{end}}", levels),
	}
	for name, text := range deep {
		err := CheckText(text)
		if want := "the template is nested deeper than 2000 levels"; err == nil || err.Error() != want {
			t.Errorf("%s: got the error %v, want %q", name, err, want)
		}
	}
	for name, text := range map[string]string{
		"blocks":      strings.Repeat("{{if 1}}a{{else}}b{{end}}{{range .}}{{with .}}{{end}}{{end}}", levels),
		"else if":     strings.Repeat("{{if 1}}a{{else if 2}}b{{else if 3}}{{end}}", levels),
		"parentheses": strings.Repeat("{{(((1)))}}", levels),
		"comments":    strings.Repeat("{{- /* {{if 1}} (((( */ -}}", levels),
		"texts":       strings.Repeat("{{\"{{if 1}}((((\\\"\"}}{{`((\"`}}{{'('}}", levels),
		"words":       strings.Repeat("{{ .if }}{{ ifs }}{{ $if }}{{ endless }}", levels/2),
	} {
		if err := CheckText(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// made has methods that return more than their arguments.
type made struct{ text string }

func (m made) Text() string            { return strings.Repeat("x", 1000) }
func (m made) Of(string) string        { return m.Text() }
func (m made) Next() made              { return made{m.text + "x"} }
func (m made) Lines() []string         { return strings.Split(m.text, "") }
func (m made) Glob(p string) []string  { return []string{p} }
func (m made) Twice(s string) string   { return s + s }
func (m made) Missing() map[string]any { return nil }

func TestResultsOfMethodsAreCounted(t *testing.T) {
	for _, call := range []string{
		`$.m.Text`, `($.m.Text)`, `($.m.Of "a")`, `("a" | $.m.Of)`, `($m.Next.Text)`, `(($m.Next).Text)`, `(index (list $m.Text) 0)`,
		`($.m.Twice $long)`, `$.m.Lines`,
	} {
		action := `{{ $m := .m }}{{ $long := repeat 500 "x" }}{{ $d := dict }}{{ range $i := until 1000 }}{{ $_ := set $d (print $i) ` + call + ` }}{{ end }}`
		_, err := execute(t, action, map[string]any{"m": made{strings.Repeat("x", 100)}}, Options{Limits: manifests.TemplateLimits{WorkBytes: 500_000}})
		var limit *excess.Error
		if !errors.As(err, &limit) || strings.Contains(err.Error(), "_result") || strings.Contains(err.Error(), "_argument") {
			t.Errorf("%s: got the error %v", call, err)
		}
	}
}

func TestResultsOfMethodsStayWhatTheyAre(t *testing.T) {
	data := map[string]any{"m": made{"ab"}, "Map": map[string]any{"Key": "v", "Nil": nil}, "None": nil}
	for text, want := range map[string]string{
		`{{ .m.Lines }}{{ len .m.Lines }}{{ range .m.Lines }}<{{ . }}>{{ end }}{{ index .m.Lines 1 }}`:                                                          "[a b]2<a><b>b",
		`{{ $x := .m.Next }}{{ $x.Next.Lines }}{{ "c" | .m.Twice | upper }}`:                                                                                    "[a b x x]CC",
		`{{ .Map.Key }}{{ .Map.Nil }}{{ .Map.Gone }}{{ .None }}{{ .Gone }}|{{ .Map.Gone | default "d" }}{{ default "d" .Map.Nil }}{{ default .Map.Key .None }}`: "v<no value><no value><no value><no value>|ddv",
		`{{ if .m.Missing }}yes{{ else }}no{{ end }}{{ with .Map.Gone }}yes{{ end }}{{ kindOf .m.Missing }}{{ eq .Map.Gone nil }}{{ and .Map.Key .Map.Nil }}`:   "nomaptrue<no value>",
	} {
		if got, err := execute(t, text, data, Options{Nothing: "<no value>"}); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestPatternsAreChecked(t *testing.T) {
	check := func(pattern string) error {
		if pattern == "bad" {
			return errors.New("no bad patterns")
		}
		return nil
	}
	for action, want := range map[string]string{
		`{{ .m.Glob "ok" }}`: "", `{{ .m.Glob "bad" }}`: "no bad patterns", `{{ list "bad" | first | .m.Glob }}`: "no bad patterns", `{{ .m.Twice "bad" }}`: "",
	} {
		_, err := execute(t, action, map[string]any{"m": made{}}, Options{CheckPattern: check})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "_pattern")) {
			t.Errorf("%s: got the error %v, want %q", action, err, want)
		}
	}
}

func TestLargeItemsAreNotComparedWithoutEnd(t *testing.T) {
	for _, call := range []string{`uniq $all`, `without $all $item $item $item $item`} {
		// The items are lists that differ in their last value.
		text := `{{ $all := list }}{{ range until 1000 }}{{ $all = append $all (append (until 600) .) }}{{ end }}{{ $item := append (until 600) -1 }}{{ ` + call + ` | len }}`
		_, err := execute(t, text, nil, Options{})
		var limit *excess.Error
		if !errors.As(err, &limit) {
			t.Errorf("%s: got the error %v", call, err)
		}
	}
}

func TestValuesAreComparedAsTextTemplateDoes(t *testing.T) {
	v := &version{}
	operands := []any{
		nil, true, false, 1, int64(1), -1, uint(1), uint64(1) << 63, 1.0, 1.5, float32(1.5), "a", "", time.Duration(1), "b",
		[]any{1}, []any(nil), map[string]any{}, map[string]any(nil), v, &version{}, version{}, [1]int{1}, [1]any{[]int{}},
	}
	comparison := template.Must(template.New("").Parse(`{{ eq .a .b }} {{ ne .a .b }}`))
	for _, a := range operands {
		for _, b := range operands {
			var want strings.Builder
			wantErr := comparison.Execute(&want, map[string]any{"a": a, "b": b})
			got, err := execute(t, `{{ eq .a .b }} {{ ne .a .b }}`, map[string]any{"a": a, "b": b}, Options{})
			if (err != nil) != (wantErr != nil) || err == nil && got != want.String() {
				t.Errorf("%T(%v) and %T(%v): got %q, %v, and text/template %q, %v", a, a, b, b, got, err, want.String(), wantErr)
			}
		}
	}
}

// A name that is misspelt would leave its function without a guard of its own.
func TestTheNamesOfGuardsAreThoseOfFunctions(t *testing.T) {
	functions := Functions()
	check := func(name string) {
		if _, ok := functions[name]; !ok {
			t.Errorf("there is no function %q", name)
		}
	}
	for name := range makers {
		check(name)
	}
	for name := range pickers {
		check(name)
	}
	for name := range estimates {
		check(name)
	}
}
