// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
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
	check.Equal(t, want, strings.Split(err.Error(), "\n"))
	if _, again := manifests.Generate(t.Context(), g, "", "", nil); again == nil || again.Error() != err.Error() {
		t.Errorf("the generator returns the error %v", again)
	}
}

func TestNewRefuses(t *testing.T) {
	fsys := folder(map[string]string{"a.yaml": `{{ define "x" }}1{{ end }}`, "b.yaml": `{{ define "x" }}2{{ end }}`, "c/large.yaml": strings.Repeat("#", 1<<20+1), "d/readme": ""})
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			g, err := gotemplate.New(fsys, test.root, test.options)
			check.Fails(t, err, test.want)
			if _, err := g.Generate(t.Context(), "", "", nil); err == nil {
				t.Error("the generator returns no error")
			}
		})
	}
	_, err := gotemplate.New(nil, ".", gotemplate.Options{})
	check.Fails(t, err, "the file system is nil")
}

func TestGenerateReportsMistakesInRenderedManifests(t *testing.T) {
	g, err := gotemplate.New(folder(map[string]string{
		"t/a.yaml": "{{ range until 2 }}\n---\na: b: c\n{{ end }}", "t/b.yaml": manifest("{{ .Values.x.y }}"), "t/c.yaml": "\n# nothing\n{{ if false }}\nx\n{{ end }}\n---\n",
		"t/d.yaml": "kind: A\nkind: B\n", "t/e.yaml": strings.ReplaceAll(manifest("x"), "\n", "\r\n"), "t/f.yaml": "\ufeff" + manifest("x"),
		"t/g.yaml": `{{ include "h" . }}`, "t/_h.tpl": "{{ define \"h\" }}\n{{ required \"no image\" .Values.image }}{{ end }}",
	}), "t", gotemplate.Options{})
	check.NoError(t, err)
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
	check.Equal(t, want, strings.Split(err.Error(), "\n"))
}

func TestStrictRefusesMissingKeys(t *testing.T) {
	if got, err := evaluate(t.Context(), "[{{ .Values.a }}]", nil, gotemplate.Options{}); got != "[]" || err != nil {
		t.Errorf("got %q and the error %v", got, err)
	}
	_, err := evaluate(t.Context(), "[{{ .Values.a }}]", nil, gotemplate.Options{Strict: true})
	check.Fails(t, err, `t/a.yaml:7:15: executing "t/a.yaml" at <.Values.a>: map has no entry for key "a"`)
	_, err = evaluate(t.Context(), `{{ tpl "{{ .Values.b }}" . }}`, nil, gotemplate.Options{Strict: true})
	check.Fails(t, err, `tpl:1:10: executing "tpl" at <.Values.b>: map has no entry for key "b" (called from t/a.yaml:7:7)`)
}

func TestDelimiters(t *testing.T) {
	got, err := evaluate(t.Context(), `[[ .Values.a ]]{{ x }}[[ tpl "[[ .Values.a ]]" . ]]`, map[string]any{"a": "b"}, gotemplate.Options{LeftDelimiter: "[[", RightDelimiter: "]]"})
	if got != "b{{ x }}b" || err != nil {
		t.Errorf("got %q and the error %v", got, err)
	}
}

func TestParametersAreNeitherTrustedNorChanged(t *testing.T) {
	g, err := gotemplate.New(folder(map[string]string{"a.yaml": `{{ $_ := set .Values.m "k" "changed" }}{{ $_ := unset .Values "x" }}` + manifest("{{ toJson .Values }}")}), ".", gotemplate.Options{})
	check.NoError(t, err)
	values := map[string]any{"m": map[string]any{"k": "v"}, "x": []any{1}}
	for range 2 {
		check.Must(g.Generate(t.Context(), "", "", types.UnstructurableMap(values)))(t)
	}
	check.Equal(t, map[string]any{"m": map[string]any{"k": "v"}, "x": []any{1}}, values)
	circle := map[string]any{}
	circle["m"] = circle
	_, err = g.Generate(t.Context(), "", "", types.UnstructurableMap(circle))
	check.Fails(t, err, "parameters: they are nested deeper than 1000 levels, or contain themselves")
	_, err = g.Generate(t.Context(), "", "", types.UnstructurableMap{"f": func() {}})
	check.Fails(t, err, "parameters: json: unsupported type")
}

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// manifest is a ConfigMap with the result of the action as its only value.
func manifest(action string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: |-\n    " + action + "\n"
}

// evaluate renders an action and returns the text.
func evaluate(ctx context.Context, action string, values map[string]any, options gotemplate.Options) (string, error) {
	g, err := gotemplate.New(folder(map[string]string{"t/a.yaml": manifest(action)}), "t", options)
	if err != nil {
		return "", err
	}
	objects, err := manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(values))
	if err != nil {
		return "", err
	}
	text, _, err := unstructured.NestedString(objects[0].(*unstructured.Unstructured).Object, "data", "v")
	return text, err
}

var shopValues = types.UnstructurableMap{
	"image":  map[string]any{"repository": "registry.example.com/shop", "tag": 1.5},
	"labels": map[string]any{"team": "b", "cost-center": "a"},
	"config": map[string]any{"url": "https://{{ .Release.Name }}.{{ .Namespace }}.svc", "size": int64(1000000)},
	"parts": map[string]any{
		"web":    map[string]any{"replicas": int64(2), "ports": []any{int64(80), int64(443)}},
		"worker": map[string]any{},
	},
	"limits": []any{map[string]any{"type": "Pod", "max": map[string]any{"cpu": "2"}}},
}

func shop(t *testing.T) manifests.Generator {
	t.Helper()
	g := check.Must(gotemplate.New(os.DirFS("testdata"), "shop", gotemplate.Options{}))(t)
	return g
}

func upgrade(ctx context.Context) context.Context {
	return manifests.Context{ReconcilerName: "shop.example.com", Revision: 2, Upgrade: true}.In(ctx)
}

func TestGolden(t *testing.T) {
	for _, test := range []struct {
		name   string
		ctx    context.Context
		values types.Unstructurable
	}{
		{"install", t.Context(), shopValues},
		{"upgrade", upgrade(t.Context()), shopValues},
		{"empty", t.Context(), types.UnstructurableMap{}},
		{"nil", t.Context(), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := manifeststest.Case{Generator: shop(t), Context: test.ctx, Namespace: "prod", Name: "app", Parameters: test.values}
			c.Golden(t, "testdata/"+test.name+".golden")
			c.Deterministic(t)
		})
	}
}

func secret(namespace, name, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"k": []byte(value)}}
}

func TestWhatLookupMayNotReturnIsNotRead(t *testing.T) {
	pages := 0
	target := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
			pages++
			items := make([]any, 10)
			for i := range items {
				items[i] = map[string]any{"kind": "Secret", "data": map[string]any{"k": strings.Repeat("x", 100_000)}}
			}
			list.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(map[string]any{"items": items})
			list.SetContinue("more")
			return nil
		},
	})
	_, err := evaluate(manifests.Context{Client: target}.In(t.Context()), `{{ lookup "v1" "Secret" "ns" "" | len }}`, nil, gotemplate.Options{Limits: manifests.TemplateLimits{WorkBytes: 1_500_000}})
	check.Fails(t, err, "error calling lookup: Secret ns/: the objects take more bytes than functions may work on in one rendering")
	check.SameNamed(t, "pages were read", 2, pages)
}

func TestFunctions(t *testing.T) {
	values := map[string]any{
		"n": int64(3), "f": 1.5, "whole": float64(2), "s": "text", "b": true, "null": nil, "list": []any{"x", int64(2), nil},
		"map": map[string]any{"z": int64(1), "a": "b", "m": map[string]any{"k": "v"}}, "int": 7, "strings": []string{"p", "q"},
		"typed": map[string]string{"k": "v"}, "many": int64(1_000_000),
		"hard": []any{int64(9007199254740993), 1e300, "0777", "yes", "2026-01-02T03:04:05Z", "1e400"},
	}
	target := fake.NewClientBuilder().WithObjects(
		secret("ns", "a", "one"), secret("ns", "b", "two"), secret("other", "c", "three"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}},
	).Build()
	component := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "cns", Name: "cname", Labels: map[string]string{"l": "1"}, Annotations: map[string]string{"a": "2"}},
	}
	known := manifests.Context{
		ReconcilerName: "shop.example.com", Digest: "abc", Revision: 3, Upgrade: true, Component: component,
		Client: target, LocalClient: fake.NewClientBuilder().WithObjects(secret("ns", "local", "x")).Build(),
	}
	tests := []struct{ action, want string }{
		// Values and what is printed.
		{`{{ .Values.s }}`, "text"},
		{`{{ .Values.n }} {{ .Values.f }} {{ .Values.b }} {{ .Values.int }} {{ .Values.many }}`, "3 1.5 true 7 1000000"},
		{`[{{ .Values.null }}{{ .Values.missing }}]`, "[]"},
		{`{{ .Values.list }} {{ .Values.map }} {{ .Values.strings }}`, "[x 2 <nil>] map[a:b m:map[k:v] z:1] [p q]"},
		{`{{ .Values.typed.k }}`, "v"},
		{`{{ if eq .Values.n 3 }}yes{{ end }}`, "yes"},
		{`{{ .Values.missing | default "d" }}`, "d"},
		{`{{ $x := .Values.s }}{{ $x }}`, "text"},
		{`{{ with .Values.map }}{{ .a }}{{ else }}none{{ end }}`, "b"},
		{`{{ range $k, $v := .Values.map.m }}{{ $k }}={{ $v }}{{ end }}`, "k=v"},
		{`{{ range .Values.missing }}x{{ else }}none{{ end }}`, "none"},
		{`{{ range until 5 }}{{ if eq . 1 }}{{ continue }}{{ end }}{{ if eq . 3 }}{{ break }}{{ end }}{{ . }}{{ end }}`, "02"},
		{`{{ define "t" }}<{{ . }}>{{ end }}{{ template "t" "x" }}{{ template "t" }}{{ template "t" .Values.n }}`, "<x><><3>"},
		{`{{ block "u" .Values.s }}[{{ . }}]{{ end }}`, "[text]"},
		{`{{ print "a" 1 2 "b" }}{{ println | len }}`, "a1 2b1"},
		{`{{ printf "%s-%03d %v %5.2f %*d" "a" 7 .Values.map.m .Values.f 4 1 }}`, "a-007 map[k:v]  1.50    1"},
		{`{{ html "<" }}{{ urlquery "a b" }}{{ len .Values.list }}{{ index .Values.list 0 }}{{ slice .Values.list 0 1 }}`, "&lt;a+b3x[x]"},
		{`{{ and 1 0 }}{{ or 0 2 }}{{ not 0 }}{{ lt 1 2 }}`, "02truetrue"},
		{`{{ eq .Values.n 2 3 }}{{ .Values.s | eq "text" }}{{ ne .Values.s "x" }}{{ eq .Values.null nil }}{{ eq nil .Values.map }}`, "truetruetruetruefalse"},
		{`{{ (toDate "2006-01-02" "2026-03-04").Format "02.01." }}{{ "2006" | (toDate "2006-01-02" "2026-03-04").Format }}`, "04.03.2026"},
		// What depends on the call.
		{`{{ .Name }}/{{ .Namespace }} {{ .Release.Name }}/{{ .Release.Namespace }}/{{ .Release.Revision }}/{{ .Release.IsInstall }}/{{ .Release.IsUpgrade }}`, "app/ns app/ns/3/false/true"},
		{`{{ .Template.Name }} {{ .Template.BasePath }} {{ .Release.Service }}`, "t/a.yaml t shop.example.com"},
		{`{{ with .Component }}{{ .Namespace }}/{{ .Name }} {{ .Digest }} {{ .Revision }} {{ .Labels.l }} {{ .Annotations.a }}{{ end }}`, "cns/cname abc 3 1 2"},
		// Objects of the cluster.
		{`{{ (lookup "v1" "Secret" "ns" "a").data.k | b64dec }}`, "one"},
		{`{{ (lookup "v1" "Namespace" "" "ns").metadata.name }}`, "ns"},
		{`{{ $s := lookup "v1" "Secret" "ns" "x" }}{{ len $s }}{{ if not $s }}none{{ end }}`, "0none"},
		{`{{ len (lookup "v1" "Secret" "ns" "local") }}`, "0"},
		{`{{ range (lookup "v1" "Secret" "ns" "").items }}{{ .metadata.name }}{{ end }}`, "ab"},
		{`{{ $l := lookup "v1" "Secret" "" "" }}{{ $l.kind }} {{ len $l.items }}`, "SecretList 3"},
		{`{{ len (lookup "v1" "ConfigMap" "ns" "").items }}`, "0"},
		{`{{ $s := lookup "v1" "Secret" "ns" "a" }}{{ dig "data" "k" ("new" | b64enc) $s }}`, "b25l"},
		{`{{ $s := lookup "v1" "Secret" "ns" "a" }}{{ $_ := set $s.data "k" "changed" }}{{ (lookup "v1" "Secret" "ns" "a").data.k | b64dec }}`, "one"},
		// Values that are hard to keep.
		{`{{ range .Values.hard }}{{ . }} {{ end }}`, "9007199254740993 1e+300 0777 yes 2026-01-02T03:04:05Z 1e400 "},
		{`{{ range .Values.hard }}{{ (dict "v" . | toYaml | fromYaml).v }} {{ end }}`, "9007199254740993 1e+300 0777 yes 2026-01-02T03:04:05Z 1e400 "},
		// Codecs.
		{`{{ toYaml .Values.map | nindent 4 }}`, "\na: b\nm:\n  k: v\nz: 1"},
		{`{{ toYamlPretty (dict "a" (list 1)) | nindent 4 }}`, "\na:\n  - 1"},
		{`{{ toJson .Values.map }}`, `{"a":"b","m":{"k":"v"},"z":1}`},
		{`{{ mustToYaml 1 }}{{ mustToJson "<" }}{{ toRawJson "<" }}`, `1"\u003c""<"`},
		{`{{ (fromYaml "a: 1000000").a }} {{ (fromJson "{\"a\": 1000000}").a }}`, "1000000 1000000"},
		{`{{ fromYaml "" }}{{ fromYamlArray "- a\n- 1" }}{{ fromJsonArray "[1, 2.5]" }}{{ mustFromYaml "5" }}`, "map[][a 1][1 2.5]5"},
		{`{{ (fromYaml "[").Error }}|{{ (fromYaml "- a").Error }}|{{ (fromJson "{").Error }}`, "line 1: did not find expected node content|want a map, got a list|unexpected end of JSON input"},
		{`{{ index (fromYamlArray "a: b") 0 }}|{{ index (fromJsonArray "x") 0 }}`, "want a list, got a map|invalid character 'x' looking for beginning of value"},
		// Counting.
		{`{{ until 3 }}{{ until -2 }}{{ until .Values.n }}{{ until 0 }}{{ until .Values.whole }}`, "[0 1 2][0 -1][0 1 2][][0 1]"},
		{`{{ untilStep 0 7 3 }}{{ untilStep 7 0 -3 }}{{ untilStep 0 5 0 }}{{ untilStep 5 0 1 }}`, "[0 3 6][7 4 1][][]"},
		{`{{ seq 3 }}|{{ seq -2 }}|{{ seq 2 4 }}|{{ seq 4 2 }}|{{ seq 1 2 6 }}|{{ seq 6 -2 1 }}|{{ seq }}|{{ seq 1 -1 5 }}`, "1 2 3|1 0 -1 -2|2 3 4|4 3 2|1 3 5|6 4 2||"},
		{`{{ repeat 3 "ab" }}{{ repeat .Values.n "c" }}{{ repeat 0 "x" }}`, "abababccc"},
		{`{{ "a\nb" | indent 2 | quote }}{{ "a" | nindent 1 | quote }}`, `"  a\n  b""\n a"`},
		{`{{ replace "a" "bb" "xaxa" }}{{ join "-" .Values.list }}{{ join "," .Values.strings }}`, "xbbxbbx-2p,q"},
		{`{{ (split "," "a,b")._1 }}{{ splitList "," "a,b" }}{{ (splitn "," 2 "a,b,c")._1 }}{{ (splitn "," -1 "a,b,c")._2 }}`, "b[a b]b,cc"},
		{`{{ wrapWith 2 "/" "aa bb" }}{{ trunc .Values.n "abcde" }}{{ "abcde" | substr 1 .Values.whole }}`, "aa/bbabcb"},
		{`{{ regexMatch "^a+$" "aaa" }}{{ regexFind "[0-9]+" "a12b" }}{{ regexFindAll "[a-z]" "ab" -1 }}{{ regexSplit "," "a,b" -1 }}`, "true12[a b][a b]"},
		{`{{ regexReplaceAll "(a)(b)" "ab ab" "${2}${1}" }}{{ regexReplaceAllLiteral "a" "ba" "$1" }}{{ mustRegexReplaceAll "a" "a" "b" }}`, "ba bab$1b"},
		// Order.
		{`{{ keys (dict "b" 1 "a" 2) (dict "d" 1 "c" 2) }}{{ values (dict "b" 1 "a" 2) }}`, "[a b c d][2 1]"},
		// Others of the library.
		{`{{ append (list 1 2) 3 }}{{ concat (list 1) (list 2) }}{{ first (list 7) }}{{ uniq (list 1 1 2) }}`, "[1 2 3][1 2]7[1 2]"},
		{`{{ merge (dict "a" 1) (dict "a" 2 "b" 3) }}{{ ternary "y" "n" true }}{{ dig "m" "k" "d" .Values.map }}`, "map[a:1 b:3]yv"},
		{`{{ "x" | b64enc }}{{ sha256sum "a" | trunc 8 }}{{ "Ab" | upper }}{{ randAlphaNum 5 | len }}{{ uuidv4 | len }}{{ semverCompare ">=1.0" "1.2" }}`, "eA==ca978112AB536true"},
		{`{{ semver "1.2.3" }}`, "1.2.3"},
		{`{{ required "none" .Values.s }}{{ required "none" 0 }}{{ required "none" false }}`, "text0false"},
		{`{{ tpl "{{ .Values.s }}!" . }}{{ tpl "{{ define \"h\" }}H{{ end }}{{ include \"h\" . }}" . }}{{ tpl "" . }}`, "text!H"},
		{`{{ tpl "[{{ tpl \"\" . }}{{ tpl \" \" . }}]" . }}`, "[ ]"},
		{`{{ shout "a" }}{{ toYaml (pick .Values.map "a") }}`, "A!a: b"},
	}
	options := gotemplate.Options{Functions: template.FuncMap{"shout": func(s string) string { return "A!" }}}
	for _, test := range tests {
		t.Run(test.action, func(t *testing.T) {
			got := check.Must(evaluate(known.In(t.Context()), test.action, values, options))(t)
			check.Same(t, test.want, got)
		})
	}
	known.Upgrade = false
	if got, err := evaluate(known.In(t.Context()), `{{ .Release.IsInstall }} {{ .Release.IsUpgrade }}`, nil, options); got != "true false" || err != nil {
		t.Errorf("an installation of revision 3: got %q and the error %v", got, err)
	}
	if got, err := evaluate(t.Context(), `{{ .Release.Revision }}{{ .Release.IsInstall }}`, nil, options); got != "1true" || err != nil {
		t.Errorf("without a component: got %q and the error %v", got, err)
	}
	_, err := evaluate(known.In(t.Context()), `{{ lookup "v1" "Secret" "ns" "a" }}`, nil, gotemplate.Options{DisableLookup: true})
	check.Fails(t, err, "lookup is not available: it is switched off")
}

// FuzzGenerate renders whatever it is given. It must end in time, without a
// panic that was not expected, and give the same twice.
func FuzzGenerate(f *testing.F) {
	for _, seed := range []string{
		manifest("{{ .Values.a }}"), `{{ define "a" }}{{ template "a" . }}{{ end }}{{ include "a" . }}`, `{{ range until 9 }}{{ break }}{{ end }}`,
		`{{ tpl .Values.t . }}`, `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, `{{ block "x" . }}{{ end }}`, `{{ with $x := 1 }}{{ $x }}{{ else with 2 }}{{ end }}`,
		`{{ printf "%[2]*[1]d" 1 99999 }}`, `{{ (index .Values.l 0) | repeat 3 | nindent 2 }}`, `{{ merge (dict) .Values .Release }}`, `{{/* x */}}{{- nil | default 1 -}}`,
	} {
		f.Add(seed)
	}
	values := types.UnstructurableMap{"a": "b", "t": "{{ tpl .Values.t . }}", "l": []any{"x", int64(1), nil}}
	options := gotemplate.Options{Timeout: 5 * time.Second, Limits: manifests.TemplateLimits{Depth: 50, OutputBytes: 1 << 16, StringBytes: 1 << 16, Items: 1000, WorkBytes: 1 << 24}}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := gotemplate.New(folder(map[string]string{"a.yaml": text}), ".", options)
		if err != nil {
			return
		}
		_, err = g.Generate(context.Background(), "ns", "app", values)
		var late *timeout.Error
		if errors.As(err, &late) && late.Busy {
			t.Errorf("%q: not even interrupted", text)
		}
		var p *types.PanicError
		if errors.As(err, &p) {
			t.Errorf("%q: %v\n%s", text, err, p.Stack)
		}
	})
}

func TestLimitsAreOptions(t *testing.T) {
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := evaluate(t.Context(), test.action, nil, gotemplate.Options{Limits: test.limits})
			check.Fails(t, err, test.want)
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
			check.NoError(t, err)
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
