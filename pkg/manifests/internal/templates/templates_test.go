// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package templates

import (
	"strings"
	"testing"
	"text/template"
	"time"
)

type version struct{ major, minor string }

func (v *version) String() string { return v.major + "." + v.minor }

// execute renders a text with the default limits.
func execute(t *testing.T, text string, data any, nothing string) (string, error) {
	t.Helper()
	functions := Functions()
	parser := NewParser("", "", functions)
	set := template.New("")
	if err := parser.Parse(set, "a", text, nil); err != nil {
		return "", err
	}
	return NewRendering(set, parser, functions, Options{Interrupted: t.Context().Err, Nothing: nothing}).Execute("a", data)
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
		if got, err := execute(t, text, data, "<no value>"); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestWhatDoesNotExistIsLeftOutOfTpl(t *testing.T) {
	got, err := execute(t, `{{ tpl "[{{ .x }}]" . }}{{ define "d" }}[{{ .x }}]{{ end }}{{ include "d" . }}`, map[string]any{}, "<no value>")
	if want := "[][<no value>]"; err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestALongTextWithFewActionsIsParsed(t *testing.T) {
	long := string(make([]byte, 2<<20))
	if _, err := execute(t, long, nil, ""); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"{{1}}", "(("} {
		text := strings.Repeat(part, 1<<20/len(part))
		if _, err := execute(t, text+long, nil, ""); err == nil {
			t.Errorf("%s: there is no error", part)
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
			got, err := execute(t, `{{ eq .a .b }} {{ ne .a .b }}`, map[string]any{"a": a, "b": b}, "")
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
