// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest_test

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
)

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
	if err := os.WriteFile(filepath.Join(dir, "helm"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
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
			check(t, func(t testing.TB) { c.EqualsHelmTemplate(t, "./chart", options) }).wants(t, test.want...)
		})
	}
}
