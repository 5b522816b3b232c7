// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"testing"
	"text/template"

	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
)

func TestFunctions(t *testing.T) {
	values := map[string]any{
		"n": int64(3), "f": 1.5, "whole": float64(2), "s": "text", "b": true, "null": nil, "list": []any{"x", int64(2), nil},
		"map": map[string]any{"z": int64(1), "a": "b", "m": map[string]any{"k": "v"}}, "int": 7, "strings": []string{"p", "q"},
		"typed": map[string]string{"k": "v"}, "many": int64(1_000_000),
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
		{`{{ .Name }}/{{ .Namespace }} {{ .Release.Name }}/{{ .Release.Namespace }}/{{ .Release.Revision }}/{{ .Release.IsInstall }}/{{ .Release.IsUpgrade }}`, "app/ns app/ns/1/true/false"},
		{`{{ .Template.Name }} {{ .Template.BasePath }}`, "t/a.yaml t"},
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
			got, err := evaluate(t.Context(), test.action, values, options)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
