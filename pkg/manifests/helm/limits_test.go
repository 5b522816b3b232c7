// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

func TestHostileTemplatesEndAsErrorsThatNameTheTemplate(t *testing.T) {
	const deep = `{{ $l := list }}{{ range 2000 }}{{ $l = list $l }}{{ end }}`
	values := map[string]any{"text": "x"}
	for _, test := range []struct{ name, action, want string }{
		{"a large regular expression", `{{ regexMatch (print (repeat 7000 "x?") "z") (repeat 2000000 "x") }}`, "functions and loops worked on more than"},
		{"all matches of a large regular expression", `{{ regexFindAll (print (repeat 7000 "x?") "z") (repeat 2000000 "x") -1 }}`, "functions and loops worked on more than"},
		{"a value in itself as TOML", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toToml $d }}`, "or contains itself"},
		{"all values in themselves", `{{ $_ := set .Values "self" .Values }}{{ toYaml .Values }}`, "or contains itself"},
		{"deep values", deep + `{{ $_ := set .Values "l" $l }}{{ .Values.YAML }}`, "error calling YAML: a value is nested deeper than 1000 levels"},
		{"deep values of a template", deep + `{{ $_ := set .Values "l" $l }}{{ .YAML }}`, "error calling YAML: a value is nested deeper than 1000 levels"},
		{"a deep pattern", `{{ .Files.Glob (repeat 3000000 "{") }}`, "at <(repeat 3000000 \"{\")>: an argument of a method takes more than 65536 bytes"},
		{"a deep pattern in a pipeline", `{{ repeat 3000000 "{" | .Files.Glob }}`, "an argument of a method takes more than 65536 bytes"},
		{"many keys", `{{ range until 1000 }}{{ $_ := genPrivateKey "ed25519" }}{{ end }}`, "functions and loops worked on more than"},
		{"required", `{{ required "text is needed" .Values.missing }}`, "text is needed"},
		{"fail", `{{ fail "not like this" }}`, "not like this"},
		{"a wrong argument", `{{ until "x" }}`, "expected integer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := evaluate(t.Context(), test.action, values, helm.Options{Timeout: time.Minute})
			wantError(t, err, test.want, "web/templates/a.yaml:")
			if err != nil && len(err.Error()) > 1024 {
				t.Errorf("the error has %d bytes", len(err.Error()))
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
			wantError(t, err, want)
		}
		if took := time.Since(started); took > 10*time.Second {
			t.Errorf("%.30s: it took %s", pattern, took)
		}
	}
}

func TestWhatMethodsReturnIsCounted(t *testing.T) {
	files := map[string]string{"web/files/a.txt": strings.Repeat("line\n", 200)}
	values := map[string]any{"text": strings.Repeat("x", 1000)}
	for _, call := range []string{
		`$.Files.Get "files/a.txt"`, `$.Files.GetBytes "files/a.txt"`, `$.Files.Lines "files/a.txt"`, `$.Files.AsConfig`, `$.Files.AsSecrets`, `($.Files.Glob "**").AsConfig`,
		`$.Values.YAML`, `now.Format (repeat 1000 "x")`,
	} {
		files["web/templates/a.yaml"] = manifest(`{{ $d := dict }}{{ range $i := until 1000 }}{{ $_ := set $d (print $i) (` + call + `) }}{{ end }}`)
		_, err := render(t.Context(), folder(files), values, helm.Options{Limits: manifests.TemplateLimits{WorkBytes: 400_000}})
		wantError(t, err, "web/templates/a.yaml:", "functions and loops worked on more than 400000 bytes")
	}
}

func TestADeepTextIsNotParsedAsTOML(t *testing.T) {
	for _, text := range []string{"[", "{a="} {
		got, err := evaluate(t.Context(), `{{ (fromToml (print "a = " (repeat 3000000 "`+text+`"))).Error }}`, nil, helm.Options{})
		if want := "the text has more than 100000 brackets"; err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
	got, err := evaluate(t.Context(), `{{ (fromToml (print "a = " (repeat 90000 "["))).Error | trunc 9 }}`, nil, helm.Options{})
	if err != nil || got != "toml: lin" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestATextWithManyDottedKeysIsNotParsedAsTOML(t *testing.T) {
	for text, want := range map[string]string{
		`repeat 10000 "a."`:                   "the text has too many dots in a line, or too many lines with dots",
		`repeat 1000 "a.b.c.d.e = 1\n"`:       "",
		`print "a = '" (repeat 1500 ".") "'"`: "",
	} {
		got, err := evaluate(t.Context(), `{{ (fromToml (`+text+`)).Error | default "" | trunc 70 }}`, nil, helm.Options{})
		if err != nil || want != "" && got != want || want == "" && strings.Contains(got, "dots") {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

func TestValuesThatDoNotFitTheSchemaAreListedWithoutTheirText(t *testing.T) {
	schema := `{"type":"object","properties":{"password":{"type":"string","pattern":"^[a-z]+$"},"port":{"type":"integer"}},"required":["host"]}`
	_, err := render(t.Context(), folder(map[string]string{"web/values.schema.json": schema}),
		map[string]any{"password": "S3cret", "port": "x"}, helm.Options{})
	wantError(t, err, "values of chart web", "at '/password': it does not match", "at '/port': got string, want integer", "missing property 'host'")
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
		wantError(t, err, name)
	}
}

func TestNumbersThatWouldBecomeOthersAreRefused(t *testing.T) {
	for _, number := range []string{"9223372036854775808", "1e400"} {
		_, err := render(t.Context(), folder(map[string]string{"web/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\nspec: " + number + "\n"}), nil, helm.Options{})
		wantError(t, err, "web/templates/a.yaml (rendered): document 1, line 5: ", number+" is beyond what a number in an object can be")
	}
}
