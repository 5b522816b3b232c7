// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestNewReportsAllMistakesAtOnceAndAgain(t *testing.T) {
	g, err := gotemplate.New(folder(map[string]string{
		"t/a.yaml": "a: 1\nb: {{ .Values.x\n", "t/b.yaml": "{{ nonsense }}", "t/c.yaml": manifest("ok"), "t/sub/_d.tpl": "\n\n{{ if }}x{{ end }}",
		"t/e.tpl": "{{ end }}", "t/f.yaml": "{{ \"open }}", "t/readme.md": "{{",
	}), "t", gotemplate.Options{})
	want := []string{
		"t/a.yaml:3: unclosed action started at t/a.yaml:2",
		`t/b.yaml:1: function "nonsense" not defined`,
		"t/e.tpl:1: unexpected {{end}}",
		"t/f.yaml:1: unterminated quoted string",
		"t/sub/_d.tpl:3: missing value for if",
	}
	if err == nil {
		t.Fatal("got no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, again := manifests.Generate(t.Context(), g, "", "", nil); again == nil || again.Error() != err.Error() {
		t.Errorf("the generator returns the error %v", again)
	}
}

func TestNewRefuses(t *testing.T) {
	fsys := folder(map[string]string{"a.yaml": `{{ define "x" }}1{{ end }}`, "b.yaml": `{{ define "x" }}2{{ end }}`, "c/large.yaml": strings.Repeat("#", 1<<20+1), "d/readme": ""})
	tests := []struct {
		name, root string
		options    gotemplate.Options
		want       string
	}{
		{"a template defined twice", ".", gotemplate.Options{}, `b.yaml: template "x" is already defined in a.yaml`},
		{"a large file", "c", gotemplate.Options{}, "c/large.yaml: it is larger than 1048576 bytes"},
		{"a folder without templates", "d", gotemplate.Options{}, `folder "d" holds no file to read (.yaml, .yml, .json, .tpl)`},
		{"a folder that does not exist", "x", gotemplate.Options{}, "x: file does not exist"},
		{"a folder outside", "../x", gotemplate.Options{}, `folder "../x": want a slash-separated path`},
		{"equal delimiters", ".", gotemplate.Options{LeftDelimiter: "%%", RightDelimiter: "%%"}, `delimiter "%%": left and right must differ`},
		{"delimiters with blanks", ".", gotemplate.Options{LeftDelimiter: "{ {"}, `delimiter "{ {": it must not contain blanks`},
		{"functions that are none", ".", gotemplate.Options{Functions: template.FuncMap{"f": 5}}, `function "f": it is int, want a function`},
		{"nil functions", ".", gotemplate.Options{Functions: template.FuncMap{"f": (func() string)(nil)}}, `function "f": it is func() string, want a function`},
		{"functions without result", ".", gotemplate.Options{Functions: template.FuncMap{"f": func() {}}}, `function "f": `},
		{"functions with bad names", ".", gotemplate.Options{Functions: template.FuncMap{"a-b": func() string { return "" }}}, `function "a-b": `},
		{"functions with our names", ".", gotemplate.Options{Functions: template.FuncMap{"include": func() string { return "" }}}, `function "include": this name is in use`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := gotemplate.New(fsys, test.root, test.options)
			wantError(t, err, test.want)
			if _, err := g.Generate(t.Context(), "", "", nil); err == nil {
				t.Error("the generator returns no error")
			}
		})
	}
	_, err := gotemplate.New(nil, ".", gotemplate.Options{})
	wantError(t, err, "the file system is nil")
}

func TestGenerateReportsMistakesInRenderedManifests(t *testing.T) {
	g, err := gotemplate.New(folder(map[string]string{
		"t/a.yaml": "{{ range until 2 }}\n---\na: b: c\n{{ end }}", "t/b.yaml": manifest("{{ .Values.x.y }}"), "t/c.yaml": "\n# nothing\n{{ if false }}\nx\n{{ end }}\n---\n",
		"t/d.yaml": "kind: A\nkind: B\n", "t/e.yaml": strings.ReplaceAll(manifest("x"), "\n", "\r\n"), "t/f.yaml": "\ufeff" + manifest("x"),
		"t/g.yaml": `{{ include "h" . }}`, "t/_h.tpl": "{{ define \"h\" }}\n{{ required \"no image\" .Values.image }}{{ end }}",
	}), "t", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = manifests.Generate(t.Context(), g, "", "", nil)
	want := []string{
		"t/a.yaml (rendered): document 1, line 3: mapping values are not allowed in this context",
		"t/a.yaml (rendered): document 2, line 6: mapping values are not allowed in this context",
		`t/b.yaml:7:14: executing "t/b.yaml" at <.Values.x.y>: nil pointer evaluating interface {}.y`,
		`t/d.yaml (rendered): document 1, line 2: key "kind" is set twice, first in line 1`,
		`t/_h.tpl:2:3: executing "h" at <required "no image" .Values.image>: error calling required: no image (called from t/g.yaml:1:3)`,
	}
	if err == nil {
		t.Fatal("got no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStrictRefusesMissingKeys(t *testing.T) {
	if got, err := evaluate(t.Context(), "[{{ .Values.a }}]", nil, gotemplate.Options{}); got != "[]" || err != nil {
		t.Errorf("got %q and the error %v", got, err)
	}
	_, err := evaluate(t.Context(), "[{{ .Values.a }}]", nil, gotemplate.Options{Strict: true})
	wantError(t, err, `t/a.yaml:7:15: executing "t/a.yaml" at <.Values.a>: map has no entry for key "a"`)
	_, err = evaluate(t.Context(), `{{ tpl "{{ .Values.b }}" . }}`, nil, gotemplate.Options{Strict: true})
	wantError(t, err, `tpl:1:10: executing "tpl" at <.Values.b>: map has no entry for key "b" (called from t/a.yaml:7:7)`)
}

func TestDelimiters(t *testing.T) {
	got, err := evaluate(t.Context(), `[[ .Values.a ]]{{ x }}[[ tpl "[[ .Values.a ]]" . ]]`, map[string]any{"a": "b"}, gotemplate.Options{LeftDelimiter: "[[", RightDelimiter: "]]"})
	if got != "b{{ x }}b" || err != nil {
		t.Errorf("got %q and the error %v", got, err)
	}
}

func TestTemplatesSeeTheComponent(t *testing.T) {
	known := manifests.Context{ReconcilerName: "shop.example.com", Digest: "abc", Revision: 3, Upgrade: true, Component: &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cns", Name: "cname", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"}},
	}}
	action := `{{ with .Component }}{{ .Namespace }}/{{ .Name }} {{ .Digest }} {{ .Revision }} {{ .Labels.l }} {{ .Annotations.a }}{{ end }} {{ .Release.Revision }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }} {{ .Release.Service }}`
	got, err := evaluate(known.In(t.Context()), action, nil, gotemplate.Options{})
	if want := "cns/cname abc 3 1 2 3 false true shop.example.com"; got != want || err != nil {
		t.Errorf("got %q and the error %v, want %q", got, err, want)
	}
	known.Upgrade = false
	if got, err := evaluate(known.In(t.Context()), `{{ .Release.IsInstall }} {{ .Release.IsUpgrade }}`, nil, gotemplate.Options{}); got != "true false" || err != nil {
		t.Errorf("an installation of revision 3: got %q and the error %v", got, err)
	}
}

func TestParametersAreNeitherTrustedNorChanged(t *testing.T) {
	g, err := gotemplate.New(folder(map[string]string{"a.yaml": `{{ $_ := set .Values.m "k" "changed" }}{{ $_ := unset .Values "x" }}` + manifest("{{ toJson .Values }}")}), ".", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{"m": map[string]any{"k": "v"}, "x": []any{1}}
	for range 2 {
		if _, err := g.Generate(t.Context(), "", "", types.UnstructurableMap(values)); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(map[string]any{"m": map[string]any{"k": "v"}, "x": []any{1}}, values); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	circle := map[string]any{}
	circle["m"] = circle
	_, err = g.Generate(t.Context(), "", "", types.UnstructurableMap(circle))
	wantError(t, err, "parameters: they are nested deeper than 1000 levels, or contain themselves")
	_, err = g.Generate(t.Context(), "", "", types.UnstructurableMap{"f": func() {}})
	wantError(t, err, "parameters: json: unsupported type")
}
