// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/trap"
)

// hostile is an input that must end as one clear error with its place, and must reach nothing beside what it was given.
type hostile struct {
	name string
	// files may hold URL and FILE, which stand for the traps.
	files  map[string]string
	source source
	values map[string]any
	// want are parts of the error; one of those that a bar separates is enough.
	want []string
}

// overTime is either of two limits: now one, now the other is reached first.
const overTime = "rendering was not done after|functions and loops worked on more than"

// source makes a generator of files.
type source func(files fs.FS) (manifests.Generator, error)

func (h hostile) by(s source) hostile {
	h.source = s
	return h
}

func (h hostile) with(values map[string]any) hostile {
	h.values = values
	return h
}

func templatesWith(o gotemplate.Options) source {
	return func(files fs.FS) (manifests.Generator, error) { return gotemplate.New(files, "t", o) }
}

func chartWith(timeout time.Duration) source {
	return func(files fs.FS) (manifests.Generator, error) {
		return helm.New(files, "web", helm.Options{Timeout: timeout, KubeVersion: "1.33.1", APIVersions: []string{"v1"}})
	}
}

func kustomizationWith(root string, o kustomize.Options) source {
	return func(files fs.FS) (manifests.Generator, error) { return kustomize.New(files, root, o) }
}

// resulting is a ConfigMap with the result of an action as its only value.
func resulting(action string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  v: |-\n    " + action + "\n"
}

func inTemplate(name, action string, want ...string) hostile {
	return hostile{name: name, files: map[string]string{"t/a.yaml": resulting(action)}, source: templatesWith(gotemplate.Options{}), want: want}
}

const chartFile = "apiVersion: v2\nname: web\nversion: 1.2.3\n"

func inChart(name, action string, want ...string) hostile {
	files := map[string]string{"web/Chart.yaml": chartFile, "web/templates/a.yaml": resulting(action)}
	return hostile{name: name, files: files, source: chartWith(time.Minute), want: append(want, "web/templates/a.yaml:")}
}

// inFile has another file of a chart.
func inFile(name, path, text string, want ...string) hostile {
	files := map[string]string{"web/Chart.yaml": chartFile, "web/templates/a.yaml": resulting("x"), path: text}
	return hostile{name: name, files: files, source: chartWith(time.Minute), want: want}
}

func inFolder(name string, files map[string]string, want ...string) hostile {
	return hostile{name: name, files: files, source: kustomizationWith(".", kustomize.Options{}), want: want}
}

func inKustomization(name, text string, want ...string) hostile {
	return inFolder(name, map[string]string{"kustomization.yaml": text, "a.yaml": configMap}, append(want, "kustomization.yaml: ")...)
}

func inResource(name, text string, want ...string) hostile {
	return inFolder(name, map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": text}, want...)
}

func inTransformer(name, transformer, text string, want ...string) hostile {
	return inFolder(name, map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\ntransformers: [" + transformer + "]", "a.yaml": configMap, "t.yaml": text,
		"plugins/kustomization.yaml": "resources: [../t.yaml]",
	}, want...)
}

func hostileTemplates() []hostile {
	listOf := func(number any) map[string]any { return map[string]any{"a": map[string]any{"b": []any{number}}} }
	const mega = `{{ $s := repeat 1000000 "x" }}`
	brief := gotemplate.Options{Timeout: 200 * time.Millisecond}
	// Each level keeps what it has parsed, and would reach the greatest depth if that did not count.
	small := templatesWith(gotemplate.Options{Limits: manifests.TemplateLimits{WorkBytes: 64 << 20}})
	long := "{{ tpl .Values.long . }}{{ if false }}" + strings.Repeat("{{.}}", 5000) + "{{ end }}"
	definitions := "{{ tpl .Values.definitions . }}"
	for i := range 2500 {
		definitions += fmt.Sprintf("{{ define \"%d\" }}x{{ end }}", i)
	}
	return []hostile{
		inTemplate("T01 an environment variable", `{{ env "`+trap.Variable+`" }}`, "t/a.yaml:7:7:", "env is not available: templates cannot read the environment"),
		inTemplate("T01 an environment variable in a text", `{{ expandenv "$`+trap.Variable+`" }}`, "t/a.yaml:7:7:", "expandenv is not available"),
		inTemplate("T01 an environment variable in a value", `{{ tpl .Values.env . }}`, "t/a.yaml:7:7", "env is not available"),
		inTemplate("T03 a host name", `{{ getHostByName "x.example.com" }}`, "t/a.yaml:7:7:", "getHostByName is not available: templates cannot use the network"),
		inTemplate("T13 loops in loops", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, overTime).by(templatesWith(brief)),
		inTemplate("T13 loops in loops over one list", `{{ $l := until 100000 }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}`, "rendering was not done after").by(templatesWith(brief)),
		inTemplate("T15 many keys", `{{ range until 1000 }}{{ $_ := genPrivateKey "rsa" }}{{ end }}`, overTime).by(templatesWith(brief)),
		inTemplate("T15 many slow hashes", `{{ range until 100000 }}{{ $_ := bcrypt "x" }}{{ end }}`, overTime).by(templatesWith(brief)),
		inTemplate("T15 many derived passwords", `{{ range until 100000 }}{{ $_ := derivePassword 1 "long" "x" "y" "z" }}{{ end }}`, overTime).by(templatesWith(brief)),
		inTemplate("T17 a lookup that is forbidden", `{{ lookup "v1" "Secret" "kube-system" "x" }}`, "t/a.yaml:7:7:", "Secret kube-system/x", "forbidden"),
		inTemplate("T19 a lookup of no version", `{{ lookup "a/b/c" "Secret" "ns" "x" }}`, "t/a.yaml:7:7:", `apiVersion "a/b/c", kind "Secret": both are needed`),
		inTemplate("T19 a lookup of a list without end", `{{ lookup "v1" "ConfigMap" "ns" "" }}`, "t/a.yaml:7:7:", "there are more than 10000 objects"),
		inTemplate("T21 a value that is required", `{{ required "set image" .Values.image }}`, "t/a.yaml:7:7:", "set image"),
		inTemplate("T23 a block without an end", `{{ if .Values.x }}`, "t/a.yaml:8: unexpected EOF"),
		inTemplate("T23 a wrong argument", `{{ upper 5 }}`, "t/a.yaml:7:13:", "expected string; found 5"),
		inTemplate("T23 a template that is missing", `{{ include "nowhere" . }}`, `there is no template "nowhere"`),
		inTemplate("T23 a number that is not whole", `{{ until 1.5 }}`, "want a whole number, got 1.5"),
		inTemplate("T23 a failure on purpose", `{{ fail "on purpose" }}`, "error calling fail: on purpose"),
		inTemplate("T27 many documents", "x\n{{ range until 100000 }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ repeat 400 \"x\" }}\n{{ end }}", "t/a.yaml: the text would be longer than 16777216 bytes"),
		inTemplate("T33 no number", "x", "parameters: a: b: it is no finite number").with(listOf(math.NaN())),
		inTemplate("T33 no finite number", "x", "parameters: a: b: it is no finite number").with(listOf(math.Inf(1))),
		inTemplate("T33 a short one", "x", "parameters: a: b: it is no finite number").with(listOf(float32(math.Inf(-1)))),
		inTemplate("recursion by include", `{{ define "r" }}{{ include "r" . }}{{ end }}{{ include "r" . }}`, `more than 512 levels deep (... r, r, r, r)`),
		inTemplate("recursion by template", `{{ define "r" }}{{ template "r" . }}{{ end }}{{ template "r" . }}`, "more than 512 levels deep"),
		inTemplate("recursion in circles", `{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ template "a" . }}{{ end }}{{ include "a" . }}`, "more than 512 levels deep (... "),
		inTemplate("recursion by tpl", `{{ tpl .Values.self . }}`, "more than 512 levels deep (... tpl, tpl, tpl, tpl)"),
		inTemplate("recursion deep inside of a structure", `{{ define "r" }}`+strings.Repeat("{{ if true }}", 110)+`{{ include "r" . }}`+strings.Repeat("{{ end }}", 110)+`{{ end }}{{ include "r" . }}`, "more than 512 levels deep"),
		inTemplate("until", `{{ until 1000000000 }}`, "error calling until: there would be more than 100000 items"),
		inTemplate("untilStep", `{{ untilStep -1000000 1000000 1 }}`, "there would be more than 100000 items"),
		inTemplate("untilStep with overflow", `{{ untilStep 0 9223372036854775807 9223372036854775800 }}`, "larger than 2 to the power of 53"),
		inTemplate("seq", `{{ seq 1 1000000000 }}`, "there would be more than 100000 items"),
		inTemplate("repeat", `{{ repeat 1000000000 "xxxx" }}`, "error calling repeat: the text would be longer than 16777216 bytes"),
		inTemplate("repeat with overflow", `{{ repeat 9223372036854775807 "xxxx" }}`, "the text would be longer than"),
		inTemplate("repeat of repeat", `{{ repeat 1000000 "x" | repeat 1000000 }}`, "the text would be longer than"),
		inTemplate("indent", `{{ indent 2147483647 "x" }}`, "the text would be longer than"),
		inTemplate("nindent", `{{ nindent 1000 (repeat 100000 "\n") }}`, "the text would be longer than"),
		inTemplate("replace", mega+`{{ replace "x" $s $s }}`, "error calling replace: the text would be longer than"),
		inTemplate("replace of nothing", mega+`{{ replace "" $s "abcdefghijklmnopqrstuvw" }}`, "the text would be longer than"),
		inTemplate("replace by expression", mega+`{{ regexReplaceAll "xx+" $s (repeat 100 "$0") }}`, "the text would be longer than"),
		inTemplate("many matches", mega+`{{ regexFindAll "x" $s -1 | len }}`, "there would be more than 100000 items"),
		inTemplate("a long expression", `{{ regexMatch (repeat 20000 "x") "" }}`, "the regular expression is longer than 16384 bytes"),
		inTemplate("join", mega+`{{ join $s (until 1000) }}`, "the text would be longer than"),
		inTemplate("wrapWith", mega+`{{ wrapWith 1 $s $s }}`, "the text would be longer than"),
		inTemplate("split", mega+`{{ splitList "" $s | len }}`, "there would be more than 100000 items"),
		inTemplate("splitn", mega+`{{ splitn "" -1 $s | len }}`, "there would be more than 100000 items"),
		inTemplate("printf with a width", `{{ printf (repeat 100 "%1000000d") 1 }}`, "error calling printf: the text would be longer than"),
		inTemplate("printf with a width as argument", `{{ printf (repeat 1000 "%[1]*[2]d") 1000000 1 }}`, "the text would be longer than"),
		inTemplate("printf with many verbs", mega+`{{ printf (repeat 1000 "%[1]s") $s }}`, "the text would be longer than"),
		inTemplate("cat", mega+`{{ cat $s $s $s $s $s $s $s $s $s $s $s $s $s $s $s $s $s }}`, "takes more than 16777216 bytes"),
		inTemplate("random text", `{{ randAlphaNum 1000000000 }}`, "functions and loops worked on more than 536870912 bytes"),
		inTemplate("random text of negative length", `{{ randBytes -1 }}`, "makeslice: len out of range"),
		inTemplate("comparisons", `{{ uniq (until 50000) | len }}`, "functions and loops worked on more than 536870912 bytes"),
		inTemplate("a dict in itself", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, "nested deeper than 1000 levels, or contains itself"),
		inTemplate("a dict in itself as JSON", `{{ $d := dict }}{{ $_ := set $d "d" (list $d) }}{{ toJson $d }}`, "or contains itself"),
		inTemplate("a dict in itself copied", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $_ := deepCopy $d }}`, "or contains itself"),
		inTemplate("a dict merged into itself", `{{ $d := dict "a" (dict) }}{{ $_ := merge $d (dict "b" $d) }}{{ $_ := mergeOverwrite $d $d }}`, "or contains itself"),
		inTemplate("a deep list", `{{ $d := list }}{{ range until 2000 }}{{ $d = list $d }}{{ end }}{{ print $d }}`, "nested deeper than 1000 levels"),
		inTemplate("a list of the same list", `{{ $d := list "x" }}{{ range until 64 }}{{ $d = list $d $d }}{{ end }}{{ $d }}`, "takes more than 16777216 bytes"),
		inTemplate("a deep and long list as YAML", `{{ $l := until 100000 }}{{ $l = list $l $l $l }}{{ range until 900 }}{{ $l = list $l }}{{ end }}{{ toYaml $l | len }}`, "takes more than 16777216 bytes"),
		inTemplate("a dict in itself as a key", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ dict $d 1 }}`, "or contains itself"),
		inTemplate("a dict in itself compared", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ eq $d $d }}`, "incompatible types for comparison: map[string]interface {} and map[string]interface {}"),
		inTemplate("a dict in itself compared in a pipeline", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ if $d | ne $d }}x{{ end }}`, "incompatible types for comparison"),
		inTemplate("a long argument of a method", mega+`{{ now.Format $s }}`, "an argument of a method takes more than 65536 bytes"),
		inTemplate("recursion by tpl of a long text", `{{ tpl .Values.long . }}`, "functions and loops worked on more than 67108864 bytes").
			with(map[string]any{"long": long}).by(small),
		inTemplate("recursion by tpl of many definitions", `{{ tpl .Values.definitions . }}`, "functions and loops worked on more than 67108864 bytes").
			with(map[string]any{"definitions": definitions}).by(small),
		inTemplate("output", mega+`{{ range until 100 }}{{ $s }}{{ end }}`, "the text would be longer than"),
		inTemplate("work", `{{ range until 1000 }}{{ $_ := repeat 16000000 "x" }}{{ end }}`, "functions and loops worked on more than 536870912 bytes"),
		inTemplate("nesting", strings.Repeat("{{ if true }}", 300)+strings.Repeat("{{ end }}", 300), "nested deeper than 120 levels"),
		inTemplate("nesting of pipelines", `{{ `+strings.Repeat("(", 300)+"1"+strings.Repeat(")", 300)+` }}`, "nested deeper than 120 levels"),
		inTemplate("nesting in tpl", `{{ tpl (repeat 100000 "{{if 1}}") . }}`, "the template is nested deeper than 2000 levels"),
		inTemplate("a long tpl", `{{ tpl (repeat 1000000 "{{if 1}}") . }}`, "the template has more than 16777216 bytes, or more than 100000 actions or parentheses"),
	}
}

func hostileCharts() []hostile {
	const deepList = `{{ $l := list }}{{ range 2000 }}{{ $l = list $l }}{{ end }}`
	const tooLong = "web/templates/a.yaml: the text would be longer than 16777216 bytes"
	brief := chartWith(200 * time.Millisecond)
	wanting := func(dependencies string) string { return chartFile + "dependencies: [" + dependencies + "]\n" }
	deepSchema := `{"type": "object", "properties": {"a": ` + strings.Repeat(`{"items":`, 20000) + "{}" + strings.Repeat("}", 20000) + "}}"
	aliased := inFile("T35 two sub-charts of one alias", "web/Chart.yaml",
		wanting("{name: db, version: 1.x.x, alias: x}, {name: cache, version: 1.x.x, alias: x}"), `more than one dependency with name or alias "x"`)
	aliased.files["web/charts/db/Chart.yaml"] = strings.Replace(chartFile, "web", "db", 1)
	aliased.files["web/charts/cache/Chart.yaml"] = strings.Replace(chartFile, "web", "cache", 1)
	conditional := inFile("T35 a condition that is no truth", "web/Chart.yaml",
		wanting("{name: db, version: 1.x.x, condition: db.enabled}"), "the condition counts for nothing")
	conditional.files["web/charts/db/Chart.yaml"] = strings.Replace(chartFile, "web", "db", 1)
	conditional.files["web/charts/db/templates/x.yaml"] = `{{ fail "the condition counts for nothing" }}`
	return []hostile{
		inChart("T01 an environment variable", `{{ env "`+trap.Variable+`" }}`, `function "env" not defined`),
		inChart("T01 an environment variable in a text", `{{ expandenv "$`+trap.Variable+`" }}`, `function "expandenv" not defined`),
		inChart("T01 an environment variable in a value", `{{ tpl .Values.env . }}`, `function "env" not defined`),
		inChart("T03 a host name", `{{ getHostByName "x.example.com" }}`, "templates cannot use the network"),
		inChart("T13 loops in loops", `{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}`, overTime).by(brief),
		inChart("T23 an action without an end", `{{ .Values.x `, "unclosed action"),
		inChart("T27 much output", `{{ $s := repeat 1000000 "x" }}{{ range until 200 }}{{ $s }}{{ end }}`, tooLong),
		inFile("T33 no number", "web/a", "", "parameters: a: it is no finite number").with(map[string]any{"a": math.NaN()}),
		inFile("T33 a number of 54 bits", "web/a", "", "parameters: a: Helm cannot keep").with(map[string]any{"a": int64(9007199254740993)}),
		inFile("T33 a number beyond int64", "web/templates/a.yaml", configMap+"spec: 9223372036854775808\n",
			"web/templates/a.yaml (rendered): document 1, line 5: ", "9223372036854775808 is beyond what a number in an object can be"),
		inFile("T33 a number beyond all floats", "web/templates/a.yaml", configMap+"spec: 1e400\n",
			"web/templates/a.yaml (rendered): document 1, line 5: ", "1e400 is beyond what a number in an object can be"),
		inFile("T31 a deep schema", "web/values.schema.json", deepSchema, "values.schema.json", "max depth"),
		inFile("T31 a schema that is itself", "web/values.schema.json", `{"$ref": "#"}`, "values of chart web", "causing reference cycle"),
		inFile("T31 a schema of another machine", "web/values.schema.json", `{"$ref": "URL"}`, "cannot refer to other files or to the network"),
		inFile("T31 a schema in a file", "web/values.schema.json", `{"$ref": "file://FILE"}`, "cannot refer to other files or to the network"),
		// Without its limit the parser would overflow the stack, which ends the process.
		inFile("blocks without end", "web/templates/a.yaml", strings.Repeat("{{if 1}}", 2_000_000), "web/templates/a.yaml: the template has more than"),
		inFile("parentheses without end", "web/templates/a.yaml", "{{"+strings.Repeat("(", 16_000_000), "web/templates/a.yaml: the template has more than"),
		inFile("T35 a sub-chart that is missing", "web/Chart.yaml", wanting("{name: db, version: 1.x.x}"), "missing in charts/ directory: db"),
		aliased,
		conditional.with(map[string]any{"db": map[string]any{"enabled": "perhaps"}}),
		inFile("T35 sub-charts without end", "web/"+strings.Repeat("charts/web/", 60)+"Chart.yaml", chartFile, "nested deeper than 50 levels"),
		inFile("T37 a type that is none", "web/crds/a.yaml", "apiVersion: v1\nkind: ConfigMap\n", "crds/a.yaml", "metadata.name is missing"),
		inFile("T37 a templated type", "web/crds/a.yaml", named("{{ .Release.Name }}"), "crds/a.yaml"),
		inChart("a large regular expression", `{{ regexMatch (print (repeat 7000 "x?") "z") (repeat 2000000 "x") }}`, "functions and loops worked on more than"),
		inChart("all matches of a large regular expression", `{{ regexFindAll (print (repeat 7000 "x?") "z") (repeat 2000000 "x") -1 }}`, "functions and loops worked on more than"),
		inChart("many keys", `{{ range until 1000 }}{{ $_ := genPrivateKey "ed25519" }}{{ end }}`, "functions and loops worked on more than"),
		inChart("a long argument of a method", `{{ now.Format (repeat 1000000 "x") }}`, "an argument of a method takes more than 65536 bytes"),
		inChart("a value in itself as TOML", `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toToml $d }}`, "or contains itself"),
		inChart("all values in themselves", `{{ $_ := set .Values "self" .Values }}{{ toYaml .Values }}`, "or contains itself"),
		inChart("deep values", deepList+`{{ $_ := set .Values "l" $l }}{{ .Values.YAML }}`, "error calling YAML: a value is nested deeper than 1000 levels"),
		inChart("deep values of a template", deepList+`{{ $_ := set .Values "l" $l }}{{ .YAML }}`, "error calling YAML: a value is nested deeper than 1000 levels"),
		inChart("a deep pattern", `{{ .Files.Glob (repeat 3000000 "{") }}`, "at <(repeat 3000000 \"{\")>: an argument of a method takes more than 65536 bytes"),
		inChart("a deep pattern in a pipeline", `{{ repeat 3000000 "{" | .Files.Glob }}`, "an argument of a method takes more than 65536 bytes"),
	}
}

func hostileKustomizations() []hostile {
	const remote, outside, code = "it leads to another machine", "it leads out of the root", "only built-in generators, transformers and validators are run"
	const program = "apiVersion: example.org/v1\nkind: Run\nmetadata:\n  name: r\n  annotations:\n" +
		"    config.kubernetes.io/function: |\n      exec: {path: /bin/touch, args: [TOUCHED]}\n"
	const container = `['{apiVersion: v1, kind: Run, metadata: {name: r, annotations: {config.kubernetes.io/function: "container: {image: x}"}}}']`
	const fromFile = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: p.yaml\n"
	const copied = "Unable to complete the copy"
	templated := kustomizationWith(".", kustomize.Options{Templates: &kustomize.Templates{}})
	limited := func(limits kustomize.Limits) source { return kustomizationWith(".", kustomize.Options{Limits: limits}) }
	decrypting := func(f manifests.DecryptorFunc) source {
		return kustomizationWith(".", kustomize.Options{Decryptor: f, Limits: kustomize.Limits{TotalBytes: 1000}})
	}
	in := func(folder string) source { return kustomizationWith(folder, kustomize.Options{}) }
	patched := func(kustomization, patch string) map[string]string {
		resource := configMap + "data: {k: " + strings.Repeat("x", 10_000) + "}\n"
		return map[string]string{"kustomization.yaml": "resources: [a.yaml]\n" + kustomization, "a.yaml": resource, "p.yaml": patch}
	}
	transformed := func(transformer, patch string) map[string]string {
		files := patched("transformers: [t.yaml]", patch)
		files["t.yaml"] = transformer
		return files
	}
	bomb, copies := "a0: &a0 [x]\n", ""
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	for i := range 40 {
		copies += fmt.Sprintf("- {op: copy, from: /data, path: /data/c%d}\n", i)
	}
	wide := map[string]string{"k20/kustomization.yaml": "resources: [a.yaml]", "k20/a.yaml": configMap}
	for i := range 20 {
		wide[fmt.Sprintf("k%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../k%d, ./x]", i+1)
		wide[fmt.Sprintf("k%d/x/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../k%d]\nnamePrefix: x-", i+1)
	}
	deep := map[string]string{}
	for i := range 65 {
		deep[fmt.Sprintf("k%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../k%d]", i+1)
	}
	large := map[string]string{}
	for i := range 5 {
		large[fmt.Sprintf("%d.yaml", i)] = strings.Repeat("#", 15<<20)
	}
	rows := []hostile{
		inKustomization("Z01 a resource of another machine", "resources: [URL]", "resources[0]", remote),
		inKustomization("Z01 a repository", "resources: ['git@example.com:a/b.git']", "resources[0]", remote),
		inFolder("Z01 a resource of another machine in a folder below", map[string]string{
			"kustomization.yaml": "resources: [sub]", "sub/kustomization.yaml": "resources: [URL]",
		}, "sub/kustomization.yaml: resources[0]: ", remote),
		inKustomization("Z01 a resource of another machine that a template names", "resources: ['{{ .Values.source }}']", remote).by(templated).
			with(map[string]any{"source": "https://example.org/x.yaml"}),
		inKustomization("Z01 a generator that loads data of another machine",
			"generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: x}, Files: [a=URL]}']", "generators[0].Files[0]: ", remote),
		inTransformer("Z01 a transformer that loads a patch of another machine", "t.yaml",
			"apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: URL\n", "t.yaml: document 1.path: ", remote),
		inTransformer("Z01 a transformer in a list in a folder", "plugins",
			"apiVersion: v1\nkind: List\nitems: [{apiVersion: builtin, kind: PatchStrategicMergeTransformer, metadata: {name: x}, paths: [URL]}]",
			"t.yaml: document 1.items[0].paths[0]: ", remote),
		inKustomization("Z03 data of another machine", "configMapGenerator: [{name: a, files: ['m=URL']}]", "configMapGenerator[0].files[0]", remote),
		inKustomization("Z03 data of the machine that we run on", "secretGenerator: [{name: a, files: ['m=http://169.254.169.254/latest']}]",
			"secretGenerator[0].files[0]", remote),
		inKustomization("Z05 a generator that is a program", "generators:\n- |-\n  "+strings.ReplaceAll(program, "\n", "\n  "), "generators[0]", code),
		inTransformer("Z05 a transformer that is a program", "t.yaml", program, "t.yaml: document 1", code),
		inFolder("Z05 a folder of transformers that changes them", map[string]string{
			"kustomization.yaml": "resources: [a.yaml]\ntransformers: [plugins]", "a.yaml": configMap, "t.yaml": program,
			"plugins/kustomization.yaml": "resources: [../t.yaml]\nnamePrefix: x-",
		}, "folder plugins: it configures generators"),
		inKustomization("Z05 a transformer that is a container", "transformers: "+container, "transformers[0]", code),
		inKustomization("Z05 a chart", "helmCharts: [{name: c, repo: 'https://example.com'}]", "helmCharts", code),
		inKustomization("Z05 a chart in the old form", "helmChartInflationGenerator: [{chartName: c}]", "helmChartInflationGenerator"),
		inKustomization("Z05 a chart as a validator",
			"validators: ['{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: x}, name: c}']", "validators[0]"),
		inFolder("Z07 the folder itself", map[string]string{"kustomization.yaml": "resources: ['.']"}, "kustomization in folder .: ", "cycle detected"),
		inFolder("Z07 a folder as data", map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: ['.']}]"},
			"kustomization in folder .: ", "file sources", "open /: it is a folder"),
		inKustomization("Z13 a path with a zero byte", `resources: ["a\0b"]`, "resources[0]", "a path must not contain a zero byte"),
		inFolder("Z15 an empty file of types", map[string]string{
			"kustomization.yaml": "resources: [a.yaml]\ncrds: [e.json]", "a.yaml": configMap, "e.json": "",
		}, "kustomization in folder .: panic"),
		inResource("Z17 junk", "\x00\x01\xff", "a.yaml"),
		inResource("Z17 a tab", "a:\n\tb: 1\n", "a.yaml", "found character that cannot start any token"),
		inFolder("Z17 nothing in a kustomization", map[string]string{"kustomization.yaml": ""}, "kustomization.yaml is empty"),
		inResource("Z17 a text", "just a text", "a.yaml"),
		inResource("Z17 an object without a kind", "a: 1\n", "./a.yaml", "missing Resource metadata"),
		inFolder("Z17 a kustomization as a resource", map[string]string{
			"kustomization.yaml": "resources: [sub/kustomization.yaml]", "sub/kustomization.yaml": "resources: [x.yaml]",
		}, "sub/kustomization.yaml"),
		inFolder("Z17 an object twice", map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]", "a.yaml": configMap, "b.yaml": configMap},
			"./b.yaml", "ConfigMap.v1.[noGrp]/a"),
		inFolder("no file system", nil, "the file system is nil").
			by(func(fs.FS) (manifests.Generator, error) { return kustomize.New(nil, ".", kustomize.Options{}) }),
		inFolder("Z17 neither a kustomization nor manifests", map[string]string{"readme.md": "x"}, "it holds no kustomization and no manifests"),
		inResource("Z19 a wrong key", configMap, "a.yaml: decrypt it: no key fits").
			by(decrypting(func([]byte, string) ([]byte, error) { return nil, errors.New("no key fits") })),
		inResource("Z19 a decryptor that panics", configMap, "panicked: no way").
			by(decrypting(func([]byte, string) ([]byte, error) { panic("no way") })),
		inResource("Z19 what is decrypted is junk", configMap, "kustomization.yaml").
			by(decrypting(func([]byte, string) ([]byte, error) { return []byte("\tx: ["), nil })),
		inFolder("Z19 what is decrypted is large", map[string]string{"a.yaml": configMap}, "a.yaml: decrypt it: the files have more than 1000 bytes together").
			by(decrypting(func([]byte, string) ([]byte, error) { return make([]byte, 2000), nil })),
		inKustomization("Z21 an unknown field", "resource: [a.yaml]", `unknown field "resource"`),
		inKustomization("Z21 a wrong type", "resources: a.yaml", "invalid Kustomization"),
		inKustomization("Z21 a file that is missing", "resources: [b.yaml]", "kustomization.yaml: resources[0]: \"b.yaml\": file does not exist"),
		inKustomization("Z21 a literal without a key", "secretGenerator: [{name: a, literals: ["+trap.Canary+"]}]",
			"kustomization.yaml: secretGenerator[0].literals[0]: want key=value"),
		inKustomization("Z21 an empty literal", "secretGenerator: [{name: a, literals: [a="+trap.Canary+", '']}]",
			"kustomization.yaml: secretGenerator[0].literals[1]: want key=value"),
		inKustomization("Z21 a literal with an empty key", "configMapGenerator: [{name: a, literals: [="+trap.Canary+"]}]",
			"configMapGenerator[0].literals[0]: want key=value"),
		inFolder("Z23 too many rules to ignore files", map[string]string{".corbelignore": strings.Repeat("x\n", 1001), "a.yaml": configMap}, "more than 1000 rules"),
		inFolder("Z23 a rule that is none", map[string]string{".corbelignore": "[\n", "a.yaml": configMap}, "pattern \"[\""),
		inFolder("Z25 a large file", map[string]string{"a.yaml": strings.Repeat("#", 50<<20)}, "a.yaml: it is larger than 16777216 bytes"),
		inFolder("Z25 many files", large, "too large together: more than 67108864 bytes"),
		inFolder("a file beyond its limit", map[string]string{"a.yaml": strings.Repeat("#", 1001)}, "a.yaml: it is larger than 1000 bytes").
			by(limited(kustomize.Limits{FileBytes: 1000})),
		inFolder("files beyond their limit", map[string]string{"a.yaml": strings.Repeat("#", 600), "b.yaml": strings.Repeat("#", 600)}, "too large together").
			by(limited(kustomize.Limits{TotalBytes: 1000})),
		inFolder("output beyond its limit", map[string]string{"a.yaml": configMap + "data: {x: " + strings.Repeat("x", 1000) + "}"},
			"it gives more than 1000 bytes").by(limited(kustomize.Limits{OutputBytes: 1000})),
		inFolder("T01 an environment variable", map[string]string{"a.yaml": `{{ env "` + trap.Variable + `" }}`}, "a.yaml:1:3:", "env is not available").by(templated),
		inFolder("T13 loops in loops", map[string]string{"a.yaml": `{{ $l := until 100000 }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}`},
			"rendering was not done after").by(kustomizationWith(".", kustomize.Options{
			Templates: &kustomize.Templates{Options: gotemplate.Options{Timeout: 100 * time.Millisecond}},
		})),
		inResource("aliases", configMap+bomb, "a.yaml: its aliases expand to more than 1000000 values"),
		inKustomization("aliases in a patch", "resources: [a.yaml]\npatches:\n- patch: |-\n    "+strings.ReplaceAll(bomb, "\n", "\n    "),
			"patches[0].patch: its aliases expand"),
		inFolder("aliases in a transformer", transformed(fromFile, bomb), "p.yaml: its aliases expand to more than 1000000 values"),
		inFolder("aliases in a file with a zero byte behind its name",
			transformed(strings.Replace(fromFile, "p.yaml", `"p.yaml\0"`, 1), bomb), "t.yaml: document 1.path"),
		inResource("nesting", "x: "+strings.Repeat("[", 1000)+strings.Repeat("]", 1000), "a.yaml: it is nested deeper than 500 levels"),
		inFolder("deep kustomizations", deep, "folder k64: kustomizations refer to each other more than 64 levels deep").by(in("k0")),
		inFolder("many kustomizations", wide, "kustomizations are referred to more than 1000 times").by(in("k0")),
		inFolder("a circle", map[string]string{"a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]"},
			"cycle detected: candidate root '/a' contains visited root '/a'").by(in("a")),
		inFolder("copies in a patch", patched("patches: [{path: p.yaml, target: {kind: ConfigMap}}]", copies), copied),
		inFolder("copies in an old patch", patched("patchesJson6902: [{path: p.yaml, target: {version: v1, kind: ConfigMap, name: a}}]", copies), copied),
		inFolder("copies in a transformer", transformed(fromFile+"target: {kind: ConfigMap}", copies), copied),
	}
	for field, text := range map[string]string{
		"resources[0]": "resources: ['%s']", "configMapGenerator[0].files[0]": "configMapGenerator: [{name: a, files: ['k=%s']}]",
		"patches[0].path": "patches: [{path: '%s'}]", "components[0]": "components: ['%s']",
	} {
		for _, path := range []string{"FILE", "../secret.yaml", "../../../../../..FILE", "sub/../../secret.yaml", "/var/run/secrets/token"} {
			rows = append(rows, inKustomization("Z07 the file "+path+" in "+field, fmt.Sprintf(text, path), field, outside))
		}
	}
	for root, want := range map[string]string{
		"../a": `folder "../a": it leads out of the root`, "/a": `folder "/a": it leads out of the root`, "a/../../b": `folder "../b": it leads out of the root`,
		"b": `folder "b": file does not exist`, "a.yaml": `folder "a.yaml": file does not exist`, "a\x00": "folder", "a\n": "folder",
	} {
		rows = append(rows, inFolder("Z07 the folder "+root, map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap}, want).by(in(root)))
	}
	return rows
}

// targets returns clients of a target where reading a Secret is forbidden and lists
// have no end, and of a local cluster that must not be asked.
func targets(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	target := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no role"))
		},
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			var o client.ListOptions
			o.ApplyOptions(options)
			items := make([]any, o.Limit)
			for i := range items {
				items[i] = map[string]any{"kind": "ConfigMap"}
			}
			list.(interface{ SetUnstructuredContent(map[string]any) }).SetUnstructuredContent(map[string]any{"items": items})
			list.SetContinue("more")
			return nil
		},
	})
	local := interceptor.NewClient(fake.NewClientBuilder().WithObjects(&corev1.Secret{}).Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			t.Error("the user of the operator was used")
			return errors.New("no")
		},
	})
	return manifests.Context{Client: target, LocalClient: local}.In(ctx)
}

func TestHostileInputIsOneClearErrorAndReachesNothing(t *testing.T) {
	traps, touched := trap.Set(t), filepath.Join(t.TempDir(), "touched")
	placeholders := strings.NewReplacer("URL", traps.URL, "FILE", traps.File, "TOUCHED", touched)
	ctx := targets(t, t.Context())
	values := map[string]any{"self": "{{ tpl .Values.self . }}", "env": `{{ env "` + trap.Variable + `" }}`}
	for _, test := range slices.Concat(hostileTemplates(), hostileCharts(), hostileKustomizations()) {
		t.Run(test.name, func(t *testing.T) {
			files := fstest.MapFS{}
			for name, text := range test.files {
				files[name] = &fstest.MapFile{Data: []byte(placeholders.Replace(text))}
			}
			parameters := maps.Clone(values)
			maps.Copy(parameters, test.values)
			g, err := test.source(files)
			var objects []client.Object
			if err == nil {
				objects, err = manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(parameters))
			}
			if err == nil {
				t.Fatalf("got no error but %d objects", len(objects))
			}
			for _, want := range test.want {
				if !containsOne(err.Error(), want) {
					t.Errorf("got the error %v, want it to contain %q", err, want)
				}
			}
			limit := 1024
			if test.files["t/a.yaml"] != "" {
				limit = 600
			}
			if len(err.Error()) > limit {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			traps.Check(t, fmt.Sprint(objects), err.Error())
		})
	}
	if _, err := os.Stat(touched); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a program was run")
	}
}

// containsOne is for texts that are not always the same: limits that are reached at the same time, the race detector.
func containsOne(text, alternatives string) bool {
	for alternative := range strings.SplitSeq(alternatives, "|") {
		if strings.Contains(text, alternative) {
			return true
		}
	}
	return false
}
