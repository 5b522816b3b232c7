// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/test/check"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

// generate makes a function of the parameters a generator.
func generate(f func(parameters map[string]any) []client.Object) manifests.Generator {
	return manifests.GeneratorFunc(func(_ context.Context, _, _ string, p types.Unstructurable) ([]client.Object, error) {
		return f(p.ToUnstructured()), nil
	})
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"key": value}}
}

func TestDeterministicFindsWhatIsNot(t *testing.T) {
	var calls atomic.Int64
	kept, data := configMap("kept", ""), map[string]any{"list": []any{map[string]any{"x": "y"}}}
	for _, test := range []struct {
		name   string
		render func(parameters map[string]any) []client.Object
		want   []string
	}{
		{"always the same", func(map[string]any) []client.Object { return []client.Object{configMap("a", "1")} }, nil},
		{"another value every time", func(map[string]any) []client.Object {
			return []client.Object{configMap("a", "1"), configMap("b", fmt.Sprint(calls.Add(1)))}
		}, []string{"ConfigMap b differs in data.key"}},
		{"another value at last", func(map[string]any) []client.Object {
			return []client.Object{configMap("a", fmt.Sprint(calls.Add(1)/24))}
		}, []string{"at the same time as others", "ConfigMap a differs in data.key"}},
		{"another order", func(map[string]any) []client.Object {
			objects := []client.Object{configMap("a", ""), configMap("b", "")}
			i := calls.Add(1) % 2
			return []client.Object{objects[i], objects[1-i]}
		}, []string{"in another order"}},
		{"one more every time", func(map[string]any) []client.Object {
			return slices.Repeat([]client.Object{configMap("a", "")}, int(calls.Add(1)))
		}, []string{"ConfigMap a is only in one of them"}},
		{"the same object again", func(map[string]any) []client.Object { return []client.Object{kept} },
			[]string{"after a caller changed the objects that it got", "ConfigMap kept-changed is only in one of them"}},
		{"the same data again", func(map[string]any) []client.Object {
			return []client.Object{&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": data,
			}}}
		}, []string{"after a caller changed the objects that it got", "ConfigMap a differs in data.list"}},
		{"errors later", func(map[string]any) []client.Object {
			if calls.Add(1) > 3 {
				panic("no")
			}
			return nil
		}, []string{"a later rendering fails, the first one did not: panicked: no"}},
		{"changed parameters", func(parameters map[string]any) []client.Object {
			delete(parameters, "list")
			return nil
		}, []string{"changes its parameters"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			calls.Store(0)
			c := manifeststest.Case{Generator: generate(test.render), Parameters: types.UnstructurableMap{"list": []any{"a"}}}
			check.Run(t, func(t testing.TB) { c.Deterministic(t) }).Wants(t, test.want...)
		})
	}
}

// updating runs f as if go test had been called with -update.
func updating(t *testing.T, f func()) {
	t.Helper()
	before := flag.Lookup("update").Value.String()
	defer func() { _ = flag.Set("update", before) }()
	check.NoError(t, flag.Set("update", "true"))
	f()
}

// The example needs a test to run in.
func TestExample(t *testing.T) { testApp(t) }

func TestGoldenComparesWithWhatUpdateWrote(t *testing.T) {
	value := "1"
	c := manifeststest.Case{Parameters: types.UnstructurableMap{}, Generator: generate(func(map[string]any) []client.Object {
		return []client.Object{configMap("b", value), configMap("a", "2")}
	})}
	file := filepath.Join(t.TempDir(), "folder", "x.golden")
	golden := func(t testing.TB) { c.Golden(t, file) }
	check.Run(t, golden).Wants(t, "run the test with -update to write it")
	updating(t, func() { check.Run(t, golden).Wants(t) })
	text, err := os.ReadFile(file)
	want := "apiVersion: v1\ndata:\n  key: \"1\"\nkind: ConfigMap\nmetadata:\n  name: b\n---\napiVersion: v1\ndata:\n  key: \"2\"\nkind: ConfigMap\nmetadata:\n  name: a\n"
	if err != nil || string(text) != want {
		t.Errorf("error %v, the file holds:\n%s", err, text)
	}
	check.Run(t, golden).Wants(t)
	value = "3"
	check.Run(t, golden).Wants(t, "x.golden is not what is rendered", `"3"`)
}

func TestGoldenMasksWhatIsRandom(t *testing.T) {
	count := 0
	c := manifeststest.Case{Generator: manifests.GeneratorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
		manifests.NoteRandom(ctx)
		count++
		text := fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {key: '%d', same: x, at: '%d'}}", count, manifests.Now(ctx).Year())
		objects, err := document.Decode("a", []byte(text))
		return []client.Object{objects[0]}, err
	})}
	file := filepath.Join(t.TempDir(), "x.golden")
	updating(t, func() { check.Run(t, func(t testing.TB) { c.Golden(t, file) }).Wants(t) })
	text, err := os.ReadFile(file)
	if want := "data:\n  at: \"2000\"\n  key: (random)\n  same: x\n"; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("error %v, the file holds:\n%s", err, text)
	}
	check.Run(t, func(t testing.TB) { c.Golden(t, file) }).Wants(t)
}

func TestDigestFindsWhatIsWrong(t *testing.T) {
	type options struct {
		Name   string
		Limits struct{ Bytes int }
		Hook   func()
		hidden int
	}
	calls := 0
	made := func(digest string) func() manifests.Generator {
		return func() manifests.Generator {
			calls++
			return manifests.WithDigest(generate(func(map[string]any) []client.Object { return nil }), digest)
		}
	}
	for _, test := range []struct {
		name   string
		same   func() manifests.Generator
		digest func(options) string
		want   []string
	}{
		{"all is well", made("1"), func(o options) string { return fmt.Sprint(o.Name, o.Limits, o.Hook != nil) }, nil},
		{"none", made(""), func(o options) string { return fmt.Sprint(o.Name, o.Limits, o.Hook != nil) }, []string{"has no digest"}},
		{"another one each time", func() manifests.Generator { return made(fmt.Sprint(calls))() }, func(o options) string { return fmt.Sprint(o.Name, o.Limits, o.Hook != nil) }, []string{"in the same way has another digest"}},
		{"a limit is forgotten", made(fmt.Sprint("", false)), func(o options) string { return fmt.Sprint(o.Name, o.Hook != nil) }, []string{"Limits.Bytes has the digest of"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			others := map[string]func() manifests.Generator{"the same options": made(test.digest(options{Name: "other", hidden: 1}))}
			for name, changed := range manifeststest.EachOption(t, options{}, nil) {
				others[name] = made(test.digest(changed))
			}
			check.Run(t, func(t testing.TB) { manifeststest.Digest(t, test.same, others) }).Wants(t, test.want...)
		})
	}
}

// helmThatPrints puts a command named helm into PATH. It wants the arguments of
// helm template, and prints a text.
func helmThatPrints(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
[ "$1 $2 $3 $4 $6 $7 $8" = "template app ./chart --values --namespace prod --skip-tests" ] || { echo "arguments: $*" >&2; exit 1; }
[ "$(cat "$5")" = "replicas: 2" ] || { echo "values: $(cat "$5")" >&2; exit 1; }
[ -z "$HELM_PLUGINS" ] || { echo "the settings of the user count" >&2; exit 1; }
cat <<'END'
` + text + "\nEND\n"
	check.NoError(t, os.WriteFile(filepath.Join(dir, "helm"), []byte(script), 0o755))
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("HELM_PLUGINS", "/somewhere")
}

const rendered = `apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {k: v}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b, annotations: {ours: x}}
`

func TestHelmTemplate(t *testing.T) {
	dropOurs := func(object *unstructured.Unstructured) { object.SetAnnotations(nil) }
	b := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: b\n"
	tests := []struct {
		name, printed string
		want          []string
	}{
		{"the same in other words", "# NOTE\n" + b + "---\napiVersion: v1\nkind: List\nitems:\n- {kind: ConfigMap, apiVersion: v1, data: {'k': \"v\"}, metadata: {name: a}}\n", nil},
		{"an object too much", b, []string{"v1 ConfigMap a: the generator renders it, helm template does not print it"}},
		{"an object missing", rendered + "---\napiVersion: v1\nkind: Secret\nmetadata: {name: c}\n", []string{"v1 Secret c: helm template prints it, the generator does not render it"}},
		{"an object twice", rendered + "---\n" + b, []string{"v1 ConfigMap b (2): helm template prints it"}},
		{"another value", b + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {k: w}\n", []string{"v1 ConfigMap a differs (-helm template +generator)"}},
		{"no YAML", "a: b: c", []string{"helm template ./chart: helm template: document 1, line 1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			helmThatPrints(t, test.printed)
			c := manifeststest.Case{Generator: fromText(t, rendered), Namespace: "prod", Name: "app", Parameters: types.UnstructurableMap{"replicas": 2}}
			options := manifeststest.HelmOptions{Args: []string{"--skip-tests"}, Normalize: dropOurs}
			check.Run(t, func(t testing.TB) { c.EqualsHelmTemplate(t, "./chart", options) }).Wants(t, test.want...)
		})
	}
}

// someBad are manifests of which the server refuses some.
const someBad = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: not-there-yet}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: not-there-yet}
---
apiVersion: v1
kind: Namespace
metadata: {name: default}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Thing, plural: things}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
---
apiVersion: example.com/v1
kind: Thing
metadata: {name: a}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: in-a-list}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: bad, namespace: not-there-yet}
spec:
  replicaz: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: registry.example.com/web}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {ports: [{port: 70000}]}
---
apiVersion: example.com/v1
kind: Nothing
metadata: {name: a}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name}}
`

func fromText(t *testing.T, text string) manifests.Generator {
	t.Helper()
	g := check.Must(manifests.FromFS(fstest.MapFS{"a.yaml": {Data: []byte(text)}}, "."))(t)
	return g
}

func TestTheServerIsAskedWhetherItWouldAcceptTheObjects(t *testing.T) {
	config := env.Shared(t).Config()
	c := manifeststest.Case{Generator: fromText(t, someBad), Namespace: "kube-system"}
	report := check.Run(t, func(t testing.TB) { c.Valid(t, config) })
	report.Wants(t, `Deployment not-there-yet/bad: `, `unknown field "spec.replicaz"`, "Service web: ", "spec.ports[0].port", "Nothing a: ",
		`no matches for kind "Nothing"`, "ConfigMap kube-system/Not_A_Name")
	if len(report.Errors) != 4 {
		t.Errorf("%d errors: %q", len(report.Errors), report.Errors)
	}
	check.SameNamed(t, "it logs", "Thing a: not checked, because its type comes with the objects", strings.Join(report.Logs, "\n"))
	anywhere := manifeststest.Case{Generator: fromText(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: in-no-namespace}\n")}
	check.Run(t, func(t testing.TB) { anywhere.Valid(t, config) }).Wants(t)
	server, err := client.New(config, client.Options{})
	check.NoError(t, err)
	err = server.Get(t.Context(), client.ObjectKey{Name: "not-there-yet"}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{}})
	if client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the objects were really created: %v", err)
	}
}
