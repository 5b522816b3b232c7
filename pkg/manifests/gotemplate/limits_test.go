// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
)

func TestHostileTemplatesEndAsLimitErrors(t *testing.T) {
	const mega = `{{ $s := repeat 1000000 "x" }}`
	tests := []struct{ name, action, want string }{
		{"recursion by include", `{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, `more than 512 levels deep (... r, r, r, r)`},
		{"recursion by template", `{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`, "more than 512 levels deep"},
		{"recursion in circles", `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ template "a" . }}{{ end }}{{ include "a" . }}`, "more than 512 levels deep (... "},
		{"recursion by tpl", `{{ tpl .Values.self . }}`, "more than 512 levels deep (... tpl, tpl, tpl, tpl)"},
		{"recursion deep inside of a structure", `{{ define "r" }}` + strings.Repeat("{{ if true }}", 110) + `{{ include "r" . }}` + strings.Repeat("{{ end }}", 110) + `{{ end }}{{ include "r" . }}`, "more than 512 levels deep"},
		{"until", `{{ until 1000000000 }}`, "error calling until: there would be more than 100000 items"},
		{"untilStep", `{{ untilStep -1000000 1000000 1 }}`, "there would be more than 100000 items"},
		{"untilStep with overflow", `{{ untilStep 0 9223372036854775807 9223372036854775800 }}`, "larger than 2 to the power of 53"},
		{"seq", `{{ seq 1 1000000000 }}`, "there would be more than 100000 items"},
		{"repeat", `{{ repeat 1000000000 "xxxx" }}`, "error calling repeat: the text would be longer than 16777216 bytes"},
		{"repeat with overflow", `{{ repeat 9223372036854775807 "xxxx" }}`, "the text would be longer than"},
		{"repeat of repeat", `{{ repeat 1000000 "x" | repeat 1000000 }}`, "the text would be longer than"},
		{"indent", `{{ indent 2147483647 "x" }}`, "the text would be longer than"},
		{"nindent", `{{ nindent 1000 (repeat 100000 "\n") }}`, "the text would be longer than"},
		{"replace", mega + `{{ replace "x" $s $s }}`, "error calling replace: the text would be longer than"},
		{"replace of nothing", mega + `{{ replace "" $s "abcdefghijklmnopqrstuvw" }}`, "the text would be longer than"},
		{"replace by expression", mega + `{{ regexReplaceAll "xx+" $s (repeat 100 "$0") }}`, "the text would be longer than"},
		{"many matches", mega + `{{ regexFindAll "x" $s -1 | len }}`, "there would be more than 100000 items"},
		{"a long expression", `{{ regexMatch (repeat 20000 "x") "" }}`, "the regular expression is longer than 16384 bytes"},
		{"join", mega + `{{ join $s (until 1000) }}`, "the text would be longer than"},
		{"wrapWith", mega + `{{ wrapWith 1 $s $s }}`, "the text would be longer than"},
		{"split", mega + `{{ splitList "" $s | len }}`, "there would be more than 100000 items"},
		{"splitn", mega + `{{ splitn "" -1 $s | len }}`, "there would be more than 100000 items"},
		{"printf with a width", `{{ printf (repeat 100 "%1000000d") 1 }}`, "error calling printf: the text would be longer than"},
		{"printf with a width as argument", `{{ printf (repeat 1000 "%[1]*[2]d") 1000000 1 }}`, "the text would be longer than"},
		{"printf with many verbs", mega + `{{ printf (repeat 1000 "%[1]s") $s }}`, "the text would be longer than"},
		{"cat", mega + `{{ cat $s $s $s $s $s $s $s $s $s $s $s $s $s $s $s $s $s }}`, "takes more than 16777216 bytes"},
		{"random text", `{{ randAlphaNum 1000000000 }}`, "functions and loops worked on more than 536870912 bytes"},
		{"random text of negative length", `{{ randBytes -1 }}`, "makeslice: len out of range"},
		{"comparisons", `{{ uniq (until 50000) | len }}`, "functions and loops worked on more than 536870912 bytes"},
		{"a dict in itself", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, "nested deeper than 1000 levels, or contains itself"},
		{"a dict in itself as JSON", `{{ $d := dict }}{{ $_ := set $d "d" (list $d) }}{{ toJson $d }}`, "or contains itself"},
		{"a dict in itself copied", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $_ := deepCopy $d }}`, "or contains itself"},
		{"a dict merged into itself", `{{ $d := dict "a" (dict) }}{{ $_ := merge $d (dict "b" $d) }}{{ $_ := mergeOverwrite $d $d }}`, "or contains itself"},
		{"a deep list", `{{ $d := list }}{{ range until 2000 }}{{ $d = list $d }}{{ end }}{{ print $d }}`, "nested deeper than 1000 levels"},
		{"a list of the same list", `{{ $d := list "x" }}{{ range until 64 }}{{ $d = list $d $d }}{{ end }}{{ $d }}`, "takes more than 16777216 bytes"},
		{"a deep and long list as YAML", `{{ $l := until 100000 }}{{ $l = list $l $l $l }}{{ range until 900 }}{{ $l = list $l }}{{ end }}{{ toYaml $l | len }}`, "takes more than 16777216 bytes"},
		{"a dict in itself as a key", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ dict $d 1 }}`, "or contains itself"},
		{"a dict in itself compared", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ eq $d $d }}`, "incompatible types for comparison: map[string]interface {} and map[string]interface {}"},
		{"a dict in itself compared in a pipeline", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ if $d | ne $d }}x{{ end }}`, "incompatible types for comparison"},
		{"a long argument of a method", mega + `{{ now.Format $s }}`, "an argument of a method takes more than 65536 bytes"},
		{"recursion by tpl of a long text", `{{ tpl .Values.long . }}`, "functions and loops worked on more than 536870912 bytes"},
		{"recursion by tpl of many definitions", `{{ tpl .Values.definitions . }}`, "functions and loops worked on more than 536870912 bytes"},
		{"output", mega + `{{ range until 100 }}{{ $s }}{{ end }}`, "the text would be longer than"},
		{"work", `{{ range until 1000 }}{{ $_ := repeat 16000000 "x" }}{{ end }}`, "functions and loops worked on more than 536870912 bytes"},
		{"nesting", strings.Repeat("{{ if true }}", 300) + strings.Repeat("{{ end }}", 300), "nested deeper than 120 levels"},
		{"nesting of pipelines", `{{ ` + strings.Repeat("(", 300) + "1" + strings.Repeat(")", 300) + ` }}`, "nested deeper than 120 levels"},
		{"nesting in tpl", `{{ tpl (repeat 100000 "{{if 1}}") . }}`, "the template is nested deeper than 2000 levels"},
		{"a long tpl", `{{ tpl (repeat 1000000 "{{if 1}}") . }}`, "the template has more than 16777216 bytes, or more than 100000 actions or parentheses"},
	}
	// Each level keeps what it has parsed.
	values := map[string]any{"self": "{{ tpl .Values.self . }}"}
	values["long"] = "{{ tpl .Values.long . }}{{ if false }}" + strings.Repeat("{{.}}", 5000) + "{{ end }}"
	definitions := "{{ tpl .Values.definitions . }}"
	for i := range 2500 {
		definitions += fmt.Sprintf("{{ define %q }}x{{ end }}", fmt.Sprint(i))
	}
	values["definitions"] = definitions
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// The limit is one of work: a busy machine makes no difference.
			_, err := evaluate(t.Context(), test.action, values, gotemplate.Options{})
			wantError(t, err, test.want)
			if err != nil && len(err.Error()) > 600 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestLimitsAreOptions(t *testing.T) {
	tests := []struct {
		name, action, want string
		limits             manifests.TemplateLimits
	}{
		{"depth", `{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, "more than 3 levels deep", manifests.TemplateLimits{Depth: 3}},
		{"keys", `{{ range until 9 }}{{ $_ := bcrypt "x" }}{{ end }}`, "more than 9000000 bytes", manifests.TemplateLimits{WorkBytes: 9_000_000}},
		{"copies", `{{ $l := until 1000 }}{{ range until 1000 }}{{ $_ := deepCopy $l }}{{ end }}`, "more than 900000 bytes", manifests.TemplateLimits{WorkBytes: 900_000}},
		{"rounds", `{{ range 1000000000000 }}{{ end }}`, "functions and loops worked on more than 900000 bytes", manifests.TemplateLimits{WorkBytes: 900_000}},
		{"text", `{{ repeat 201 "x" }}`, "longer than 200 bytes", manifests.TemplateLimits{StringBytes: 200}},
		{"items", `{{ until 4 }}`, "more than 3 items", manifests.TemplateLimits{Items: 3}},
		{"output", `{{ "x" }}`, "the output is larger than 50 bytes", manifests.TemplateLimits{OutputBytes: 50}},
		{"work", `{{ repeat 100 "x" }}`, "more than 99 bytes", manifests.TemplateLimits{WorkBytes: 99}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := evaluate(t.Context(), test.action, nil, gotemplate.Options{Limits: test.limits})
			wantError(t, err, test.want)
			var limit *excess.Error
			if !errors.As(err, &limit) {
				t.Errorf("the error %v holds no excess.Error", err)
			}
		})
	}
}

func TestEndlessLoopsEndInTime(t *testing.T) {
	for _, action := range []string{
		`{{ range 1000000000000 }}{{ end }}`,
		`{{ $l := until 100000 }}{{ range $l }}{{ range $l }}{{ if false }}x{{ end }}{{ end }}{{ end }}`,
		`{{ define "r" }}{{ range 1000000000000 }}{{ $_ := list }}{{ end }}{{ end }}{{ include "r" . }}`,
		`{{ range 1000000000000 }}{{ continue }}{{ end }}`,
	} {
		t.Run(action, func(t *testing.T) {
			g, err := gotemplate.New(folder(map[string]string{"a.yaml": action}), ".", gotemplate.Options{Timeout: 50 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			// On a busy machine a rendering may notice its end too late to report
			// where it was; but the next one must find that it has ended.
			deadline := time.Now().Add(time.Minute)
			for {
				_, err = manifests.Generate(t.Context(), g, "", "", nil)
				var late *timeout.Error
				if !errors.As(err, &late) {
					t.Fatalf("got the error %v", err)
				}
				if strings.Contains(err.Error(), "a.yaml:1:") {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("got only the error %v", err)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
}
