// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered_test

import (
	"strings"
	"testing"
	"text/template"

	"github.com/corbel-run/corbel/pkg/manifests/internal/metered"
)

type version struct{ major, minor string }

func (v *version) String() string { return v.major + "." + v.minor }

// execute renders a text with a meter.
func execute(t *testing.T, text string, data any, nothing string) (string, error) {
	t.Helper()
	functions := metered.Builtin()
	parser := metered.NewParser("", "", functions)
	set := template.New("")
	if err := parser.Parse(set, "a", text, nil); err != nil {
		return "", err
	}
	meter := metered.NewMeter(metered.Limits{}, t.Context().Err, nothing)
	return metered.NewScope(set, parser, meter, functions).Execute("a", data)
}

func TestValuesArePrintedAsTextTemplateDoes(t *testing.T) {
	data := map[string]any{"v": struct{ V version }{version{"1", "33"}}, "p": &version{"1", "34"}, "list": []any{1, "a"}, "f": 1e6}
	for text, want := range map[string]string{
		"{{ .p }}":                       "1.34",
		"{{ with .v }}{{ .V }}{{ end }}": "1.33",
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
