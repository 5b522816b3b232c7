// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/trap"
)

// badChart is a chart that must end as an error. Files are those beside a Chart.yaml,
// and action is what a template does.
type badChart struct {
	name, action string
	files        map[string]string
	values       map[string]any
	want         []string
	timeout      time.Duration
}

const (
	overTime = "rendering was not done after|functions and loops worked on more than"
	tooLong  = "the text would be longer than 16777216 bytes"
)

// badActions are rows about what a template does. Those of functions that charts share with
// other templates are in the package gotemplate.
func badActions() []badChart {
	at := func(name, action string, want ...string) badChart {
		return badChart{name: name, action: action, want: append(want, "web/templates/a.yaml:")}
	}
	brief := func(name, action string) badChart {
		return badChart{name: name, action: action, want: []string{overTime}, timeout: 200 * time.Millisecond}
	}
	return []badChart{
		at("T01 an environment variable", `{{ env "`+trap.Variable+`" }}`, `function "env" not defined`),
		at("T01 an environment variable in a text", `{{ expandenv "$`+trap.Variable+`" }}`, `function "expandenv" not defined`),
		at("T01 an environment variable in a value", `{{ tpl .Values.env . }}`, `function "env" not defined`),
		at("T03 a host name", `{{ getHostByName "x.example.com" }}`, "templates cannot use the network"),
		brief("T13 loops in loops", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`),
		at("T23 an action without an end", `{{ .Values.x `, "unclosed action"),
		at("T23 a block without an end", `{{ if .Values.x }}`, "unexpected EOF"),
		{name: "T27 much output", action: `{{ $s := repeat 1000000 "x" }}{{ range until 200 }}{{ $s }}{{ end }}`, want: []string{"web/templates/a.yaml: " + tooLong}},
		{name: "T27 many documents", action: "x\n{{ range until 100000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ repeat 400 \"x\" }}\n{{ end }}", want: []string{"web/templates/a.yaml: " + tooLong}},
		{name: "T33 no number", action: "x", values: map[string]any{"a": math.NaN()}, want: []string{"parameters: a: it is no finite number"}},
		{name: "T33 no finite number", action: "x", values: map[string]any{"a": math.Inf(1)}, want: []string{"parameters: a: it is no finite number"}},
		{name: "T33 a number of 54 bits", action: "x", values: map[string]any{"a": int64(9007199254740993)}, want: []string{"parameters: a: Helm cannot keep"}},
	}
}

// badFiles are rows about the files of a chart.
func badFiles() []badChart {
	file := func(name, path, text string, want ...string) badChart {
		return badChart{name: name, action: "x", files: map[string]string{path: text}, want: want}
	}
	wanting := func(dependencies string) string { return chartFile + "dependencies: [" + dependencies + "]\n" }
	deep := `{"type": "object", "properties": {"a": ` + strings.Repeat(`{"items":`, 20000) + "{}" + strings.Repeat("}", 20000) + "}}"
	return []badChart{
		file("T31 a deep schema", "web/values.schema.json", deep, "values.schema.json", "max depth"),
		file("T31 a schema that is itself", "web/values.schema.json", `{"$ref": "#"}`, "values of chart web", "causing reference cycle"),
		file("T31 a schema of another machine", "web/values.schema.json", `{"$ref": "URL"}`, "cannot refer to other files or to the network"),
		file("T31 a schema in a file", "web/values.schema.json", `{"$ref": "file://FILE"}`, "cannot refer to other files or to the network"),
		file("T35 a sub-chart that is missing", "web/Chart.yaml", wanting("{name: db, version: 1.x.x}"), "missing in charts/ directory: db"),
		{name: "T35 two sub-charts of one alias", action: "x", files: map[string]string{
			"web/Chart.yaml":           wanting("{name: db, version: 1.x.x, alias: x}, {name: cache, version: 1.x.x, alias: x}"),
			"web/charts/db/Chart.yaml": strings.Replace(chartFile, "web", "db", 1), "web/charts/cache/Chart.yaml": strings.Replace(chartFile, "web", "cache", 1),
		}, want: []string{`more than one dependency with name or alias "x"`}},
		{name: "T35 a condition that is no truth", action: "x", values: map[string]any{"db": map[string]any{"enabled": "perhaps"}}, files: map[string]string{
			"web/Chart.yaml":           wanting("{name: db, version: 1.x.x, condition: db.enabled}"),
			"web/charts/db/Chart.yaml": strings.Replace(chartFile, "web", "db", 1), "web/charts/db/templates/x.yaml": `{{ fail "the condition counts for nothing" }}`,
		}, want: []string{"the condition counts for nothing"}},
		file("T35 sub-charts without end", "web/"+strings.Repeat("charts/web/", 60)+"Chart.yaml", chartFile, "nested deeper than 50 levels"),
		file("T37 a type that is none", "web/crds/a.yaml", "apiVersion: v1\nkind: ConfigMap\n", "crds/a.yaml", "metadata.name is missing"),
		file("T37 a templated type", "web/crds/a.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n", "crds/a.yaml"),
	}
}

func TestBadChartsAreOneClearErrorAndReachNothing(t *testing.T) {
	traps := trap.Set(t)
	for _, test := range append(badActions(), badFiles()...) {
		t.Run(test.name, func(t *testing.T) {
			fsys := folder(map[string]string{"web/templates/a.yaml": manifest(test.action)})
			for name, text := range test.files {
				text = strings.ReplaceAll(strings.ReplaceAll(text, "URL", traps.URL), "FILE", traps.File)
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			values := map[string]any{"env": `{{ env "` + trap.Variable + `" }}`}
			for key, value := range test.values {
				values[key] = value
			}
			timeout := time.Minute
			if test.timeout > 0 {
				timeout = test.timeout
			}
			objects, err := render(t.Context(), fsys, values, helm.Options{Timeout: timeout, KubeVersion: "1.33.1", APIVersions: []string{"v1"}})
			if err == nil {
				t.Fatalf("got no error but %d objects", len(objects))
			}
			for _, want := range test.want {
				if !containsOne(err.Error(), want) {
					t.Errorf("got the error %v, want it to contain %q", err, want)
				}
			}
			if len(err.Error()) > 1024 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			traps.Check(t, err.Error())
		})
	}
}

// containsOne is for limits of which now one, now the other is reached first.
func containsOne(text, alternatives string) bool {
	for alternative := range strings.SplitSeq(alternatives, "|") {
		if strings.Contains(text, alternative) {
			return true
		}
	}
	return false
}
