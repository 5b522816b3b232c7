// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/engine"

	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/check"
)

// wrapped makes any text a line of YAML.
const wrapped = `{{ include "t" . | b64enc }}`

func defining(action string) string {
	return `{{ define "d" }}[{{ . }}]{{ end }}{{ define "t" }}` + action + `{{ end }}`
}

// byHelm evaluates an action with Helm's engine.
func byHelm(action string, values map[string]any) (string, error) {
	c := &chart.Chart{
		Metadata:  &chart.Metadata{Name: "web"},
		Templates: []*common.File{{Name: "templates/a.yaml", Data: []byte(wrapped)}, {Name: "templates/_t.tpl", Data: []byte(defining(action))}},
	}
	for _, name := range otherFiles {
		c.Files = append(c.Files, &common.File{Name: name, Data: []byte("of " + name + "\nend\n")})
	}
	outputs, err := engine.Render(c, common.Values{"Values": values})
	return outputs["web/templates/a.yaml"], err
}

// otherFiles are those of the chart that are no templates.
var otherFiles = []string{
	"a.txt", "config/a.yaml", "config/b.json", "config/deep/c.yaml", "config/deep/er/d.yml", "config/deep/er/e.YAML", "dash-board.json", "dash{board}.json",
	"files/aaaa.txt", "files/aab.txt", "files/x.y.z", "files/[a].txt", "files/ü.txt", "files/a b.txt", "scripts/run.sh", "scripts/run.sh.bak", "xconfig/z.yaml",
}

func TestFunctionsGiveWhatThoseOfHelmGive(t *testing.T) {
	values := map[string]any{
		"map": map[string]any{"b": 1.5, "a": []any{"x", nil, true}, "z": map[string]any{"k": "line1\nline2"}},
		"s":   "some text", "n": 3.0, "big": 1234567.0, "none": nil, "list": []any{"c", "a", "b"},
		"yaml": "a: 1\nb: [x, 'y']\n", "bad": "a: [", "json": `{"a":1,"b":[1,"x"]}`, "toml": "a = 1\n[b]\nc = 'x'\n",
	}
	files := map[string]string{"web/templates/a.yaml": manifest(wrapped)}
	for _, name := range otherFiles {
		files["web/"+name] = "of " + name + "\nend\n"
	}
	actions := []string{
		`{{ toYaml .Values.map }}`, `{{ .Values.map | toYamlPretty }}`, `{{ toJson .Values.map }}`, `{{ toToml .Values.map }}`, `{{ toToml .Values.s }}`,
		`{{ mustToYaml .Values.map }}`, `{{ mustToJson .Values.map }}`, `{{ mustToToml .Values.map }}`, `{{ mustToToml .Values.s }}`,
		`{{ fromYaml .Values.yaml }}`, `{{ fromYaml .Values.bad }}`, `{{ fromYamlArray "[1, a]" }}`, `{{ fromYamlArray "a: 1" }}`,
		`{{ fromJson .Values.json }}`, `{{ fromJson .Values.bad }}`, `{{ fromJsonArray "[1]" }}`, `{{ fromJsonArray "{" }}`,
		`{{ fromToml .Values.toml }}`, `{{ fromToml .Values.bad }}`, `{{ toYaml nil }}`, `{{ toYaml .Values.none }}`, `{{ toJson "<&>" }}`,
		`{{ range tuple "90" 90 90.5 "1h30m" " 2m " "" "x" nil true "1e300" }}{{ durationSeconds . }};{{ durationMilliseconds . }};{{ durationMicroseconds . }};{{ durationNanoseconds . }};{{ durationMinutes . }};{{ durationHours . }};{{ durationDays . }};{{ durationWeeks . }};{{ durationRoundTo . "1m" }};{{ durationTruncateTo . "1m" }};{{ durationRoundTo . "y" }}|{{ end }}`,
		`{{ mustToDuration "90" }}`, `{{ mustToDuration "x" }}`, `{{ mustToDuration nil }}`, `{{ mustToDuration 9223372036854775807 }}`,
		`{{ required "need it" .Values.none }}`, `{{ required "need it" "" }}`, `{{ required "need it" 0 }}`, `{{ required "m" .Values.list }}`, `{{ fail "no" }}`,
		`{{ until 3 }}`, `{{ until -2 }}`, `{{ until 0 }}`, `{{ until .Values.n }}`, `{{ until "3" }}`, `{{ until (int .Values.n) }}`, `{{ untilStep 1 9 2 }}`, `{{ untilStep 9 1 -3 }}`, `{{ untilStep 1 2 0 }}`, `{{ untilStep 1 .Values.n 1 }}`,
		`{{ seq }}`, `{{ seq 3 }}`, `{{ seq -2 }}`, `{{ seq 2 5 }}`, `{{ seq 5 2 }}`, `{{ seq 1 2 9 }}`, `{{ seq 1 0 9 }}`, `{{ seq 1 2 3 4 }}`, `{{ seq .Values.n }}`, `{{ seq 5 2 1 }}`, `{{ seq 0 }}`, `{{ seq 1 -1 5 }}`,
		`{{ repeat 3 "ab" }}`, `{{ repeat 0 "ab" }}`, `{{ repeat -1 "ab" }}`, `{{ repeat .Values.n "x" }}`, `{{ indent 2 "a\nb" }}`, `{{ nindent 2 "a\nb" }}`, `{{ indent -1 "a" }}`, `{{ nindent "2" "a" }}`,
		`{{ replace "t" "TT" .Values.s }}`, `{{ replace "" "-" "abc" }}`, `{{ join "," .Values.list }}`, `{{ join "," .Values.s }}`, `{{ join "," .Values.none }}`, `{{ wrapWith 4 "/" .Values.s }}`, `{{ split " " .Values.s }}`, `{{ splitn " " 2 .Values.s }}`, `{{ splitList "e" .Values.s }}`,
		`{{ printf "%s %v %5.2f %d" "a" .Values.n .Values.n (int .Values.n) }}`, `{{ print 1 "a" nil }}`, `{{ println "x" }}`, `{{ printf "%d" .Values.n }}`, `{{ html "<a>" }}{{ js "'" }}{{ urlquery "a b" }}`,
		`{{ .Values.none }}|{{ .Values.missing }}|{{ .Values.big }}|{{ .Values.list }}|{{ .Values.map }}`, `{{ .Values.missing.deeper }}`,
		`{{ if (include "d" .Values.missing) }}yes{{ end }}`, `{{ include "d" .Values.none | upper }}`, `{{ include "d" .Values.none | len }}`, `{{ template "d" .Values.none }}`, `{{ include "x" . }}`,
		`{{ tpl "{{ .a }}{{ .b }}" (dict "a" 1) }}`, `{{ tpl "{{ define \"i\" }}in{{ end }}{{ include \"i\" . }}{{ include \"d\" 1 }}" . }}`, `{{ tpl "{{ .a" . }}`, `{{ tpl "" . }}|`, `{{ tpl "{{ nope }}" . }}`,
		`{{ lookup "v1" "Secret" "ns" "x" }}`, `{{ env "HOME" }}`, `{{ expandenv "$HOME" }}`, `{{ nope }}`, `{{ .Values.s.x }}`, `{{ index .Values.list 9 }}`,
		`{{ keys .Values.map | sortAlpha }}`, `{{ regexReplaceAll "[aeiou]" .Values.s "${0}${0}" }}`, `{{ regexFindAll "t" .Values.s -1 }}`, `{{ regexMatch "[" "x" }}`, `{{ mustRegexMatch "[" "x" }}`,
		`{{ uniq (list 1 1 2) }}{{ without (list 1 2) 1 }}`, `{{ dig "a" "b" "d" .Values.map }}`, `{{ get .Values.map "b" }}`, `{{ deepCopy .Values.map }}`, `{{ merge (dict "q" 1) .Values.map }}`, `{{ toString nil }}`, `{{ quote nil }}{{ squote .Values.none .Values.s }}`,
		`{{ range $i, $e := .Values.list }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ $i }}{{ $e }}{{ else }}none{{ end }}`, `{{ range .Values.none }}x{{ else }}none{{ end }}`, `{{ range 3 }}{{ . }}{{ end }}`, `{{ with .Values.s }}{{ . }}{{ end }}{{ block "b" . }}blk{{ end }}`,
		`{{ .Values.YAML }}{{ (.Values.Table "map").z.k }}{{ .Values.PathValue "map.b" }}{{ .Values.AsMap.s }}{{ .Values.Table "none" }}`, `{{ eq nil .Values.none }}{{ eq .Values.n 1.0 3.0 }}{{ eq .Values.s .Values.n }}`, `{{ eq .Values.map .Values.map }}`, `{{ eq 1 }}`, `{{ .Values.s | eq "some text" }}{{ ne .Values.n 3.0 }}{{ ne .Values.none .Values.s }}{{ eq true (not false) }}`,
		`{{ .Files.Get "a.txt" }}{{ .Files.Get "none" }}{{ .Files.GetBytes "a.txt" }}{{ .Files.Lines "a.txt" }}{{ .Files.AsConfig }}{{ .Files.AsSecrets }}`,
		`{{ $x := 1 }}{{ $x = 2 }}{{ $x }}{{- "  trim" -}}  `, `{{ eq .Values.n 3 }}`, `{{ eq .Values.n 3.0 }}`, `{{ kindOf .Values.n }}{{ typeOf .Values.n }}`, `{{ add 1 .Values.n }}{{ div 7 2 }}{{ int64 .Values.big }}`, `x`, `{{ sha256sum .Values.s }}{{ b64enc .Values.s }}`,
	}
	for _, pattern := range []string{
		"*", "**", "***", "?", "??????", "*.txt", "**.txt", "**/*.yaml", "config/*", "config/**", "config/*.yaml", "config/**.yaml", "config/*/*", "config/**/*.y*ml", "*/*", "*/*/*", "**/*/*", "**/**",
		"{config,files}/*", "config/{a,b}.*", "{a,config/a}.{txt,yaml}", "config/**.{yaml,yml,json}", "{*,*/*}.json", "{,x}config/{a,z}.yaml", "{config/{a,b},files/*}.{yaml,json,txt}", "**{a,b}*", "*{a,b}*{.txt,.json}", "config/{deep/,}*",
		"files/[a-c]*", "files/[!a]*", "files/[ax].*", "files/[!x].txt", "files/[ü].txt", "[a-z]*/*.sh", "[a-c]*", "files/a?b.txt", "files/*a*b*", "files/a*a*a*.txt", "*a*a*a*", "**a**a**", "*o*/*a*.*a*",
		"dash\\{board\\}.json", "dash?board?.json", "files/\\[a\\].txt", "*.json", "config", "config/", "/config/a.yaml", "./config/a.yaml", "", "{", "}", "[", "]", "[]", "[a", "{a", "{a,", "a,b", "\\", "a\\", "[z-a]*", "{}", "{,}", "{a.txt}", "!a.txt", "x{*,**}y{*,**}z",
	} {
		quoted := strconv.Quote(pattern)
		actions = append(actions, `{{ range $name, $data := .Files.Glob `+quoted+` }}{{ $name }}={{ len $data }};{{ end }}`,
			`{{ (.Files.Glob `+quoted+`).AsConfig }}|{{ (`+quoted+` | .Files.Glob).AsSecrets }}`)
	}
	for _, action := range actions {
		t.Run(action, func(t *testing.T) {
			want, wantErr := byHelm(action, values)
			files["web/templates/_t.tpl"] = defining(action)
			objects, err := render(t.Context(), folder(files), values, helm.Options{})
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("got the error %v, and Helm %v", err, wantErr)
			}
			if err != nil {
				return
			}
			if got := data(t, objects[0]); got != want {
				t.Errorf("got %q, and Helm %q", got, want)
			}
		})
	}
}

// Helm's matcher tries all ways of matching the wildcards with a name, and nothing can
// interrupt it.
func TestPatternsThatWouldTakeVeryLongAreRefused(t *testing.T) {
	const wildcards = "the pattern has too many wildcards for the names of the files: "
	for pattern, want := range map[string]string{
		strings.Repeat("*a", 20) + "b":                              wildcards + "20 one after the other",
		strings.Repeat("**a", 20) + "b":                             wildcards + "20 one after the other",
		strings.Repeat("{*,a*,**}", 10) + "b":                       wildcards + "20 one after the other",
		strings.Repeat("{a,aa}", 20) + "b":                          wildcards + "20 one after the other",
		"{x,{" + strings.Repeat("*a", 20) + "b,c}}":                 wildcards + "22 one after the other",
		strings.Repeat("?a*??", 300):                                "the pattern is longer than 1024 bytes",
		strings.Repeat("?a", 200):                                   "the pattern has more than 64 parts one after the other",
		strings.Repeat("{a,", 150) + "b" + strings.Repeat("}", 150): "",
		"{" + strings.Repeat("*.yaml,", 140) + "a}":                 "",
		"??{a,aa}?[!b]???{a,aa}b":                                   "",
	} {
		files := map[string]string{"web/templates/a.yaml": manifest(`{{ len (.Files.Glob .Values.pattern) }}`), "web/files/" + strings.Repeat("a", 200): ""}
		started := time.Now()
		_, err := render(t.Context(), folder(files), map[string]any{"pattern": pattern}, helm.Options{Timeout: time.Minute})
		if want == "" && err != nil {
			t.Errorf("%.30s: %v", pattern, err)
		} else if want != "" {
			check.Fails(t, err, want)
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("%.30s: it took %s", pattern, took)
		}
	}
}

func TestATextThatTakesLongIsNotParsedAsTOML(t *testing.T) {
	const brackets, dots = "the text has more than 100000 brackets", "the text has too many dots in a line, or too many lines with dots"
	for text, want := range map[string]string{
		`print "a = " (repeat 3000000 "[")`:   brackets,
		`print "a = " (repeat 3000000 "{a=")`: brackets,
		`print "a = " (repeat 90000 "[")`:     "toml: lin",
		`repeat 10000 "a."`:                   dots,
		`repeat 1000 "a.b.c.d.e = 1\n"`:       "",
		`print "a = '" (repeat 1500 ".") "'"`: "",
	} {
		got, err := evaluate(t.Context(), `{{ (fromToml (`+text+`)).Error | default "" | trunc 70 }}`, nil, helm.Options{})
		if err != nil || !strings.HasPrefix(got, want) || want == "" && strings.Contains(got, "dots") {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestValuesThatDoNotFitTheSchemaAreListedWithoutTheirText(t *testing.T) {
	schema := `{"type":"object","properties":{"password":{"type":"string","pattern":"^[a-z]+$"},"port":{"type":"integer"}},"required":["host"]}`
	_, err := render(t.Context(), folder(map[string]string{"web/values.schema.json": schema}),
		map[string]any{"password": "S3cret", "port": "x"}, helm.Options{})
	check.Fails(t, err, "values of chart web", "at '/password': it does not match", "at '/port': got string, want integer", "missing property 'host'")
	if strings.Contains(err.Error(), "S3cret") {
		t.Errorf("the error shows the value: %v", err)
	}
}

// Helm's parser expands all aliases, and a text that stands for many becomes as many.
func TestTextsWithAliasesAreLimited(t *testing.T) {
	bomb := "a: &a " + strings.Repeat("x", 50_000) + "\nb: [" + strings.Repeat("*a, ", 9_999) + "]\n"
	const want = "the aliases of the document expand to more than 16777216 bytes"
	text, err := evaluate(t.Context(), `{{ (fromYaml .Values.text).Error }}{{ fromYamlArray .Values.list | first }}`, map[string]any{
		"text": bomb, "list": "- " + strings.ReplaceAll(bomb, "\n", "\n  "),
	}, helm.Options{})
	if err != nil || strings.Count(text, want) != 2 {
		t.Errorf("got %.500q, %v", text, err)
	}
	for name, files := range map[string]map[string]string{
		"a.yaml (rendered): document 1, line 1: " + want:             {"web/templates/a.yaml": manifest("x") + "{{ .Values.text }}"},
		"values.yaml: " + want:                                       {"web/values.yaml": bomb},
		"charts/db/values.yaml: " + want:                             {"web/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "web/charts/db/values.yaml": bomb},
		"charts/db.tgz: it is no packed chart: values.yaml: " + want: {"web/charts/db.tgz": string(archived(t, regular("db/Chart.yaml", "apiVersion: v2\nname: db\nversion: 1.0.0\n"), regular("db/values.yaml", bomb)))},
	} {
		_, err := render(t.Context(), folder(files), map[string]any{"text": bomb}, helm.Options{})
		check.Fails(t, err, name)
	}
}
