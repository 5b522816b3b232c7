// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// moduleRoot is the folder of go.mod.
const moduleRoot = "../../../../.."

// module writes a module with the types of all charts into a temporary folder. It needs what this
// module needs, so that nothing is loaded.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(moduleRoot, name))
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), strings.Replace(string(content), "module github.com/corbel-run/corbel", "module generated", 1))
	}
	for folder, name := range charts {
		root, _ := learnChart(t, folder)
		code, err := GoTypes(root, name)
		if err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, folder, "types.go"), file(folder, code))
	}
	return dir
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// run runs a program in a folder and returns what it prints.
func run(t *testing.T, dir, stdin, name string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir, command.Stdin = dir, strings.NewReader(stdin)
	var errors strings.Builder
	command.Stderr = &errors
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v:\n%s", command, err, errors.String())
	}
	return output
}

// roundTrip decodes a list of documents for each chart and encodes them again.
const roundTrip = `package main

import (
	"encoding/json"
	"os"

	"generated/bitnami"
	"generated/helmdocs"
	"generated/schema"
)

func main() {
	var documents map[string][]json.RawMessage
	must(json.NewDecoder(os.Stdin).Decode(&documents))
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"bitnami":  again[bitnami.CacheValues](documents["bitnami"]),
		"helmdocs": again[helmdocs.ShopValues](documents["helmdocs"]),
		"schema":   again[schema.StoreValues](documents["schema"]),
	}))
}

func again[T any](documents []json.RawMessage) []T {
	values := make([]T, len(documents))
	for i, document := range documents {
		must(json.Unmarshal(document, &values[i]))
	}
	return values
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
`

// What is decoded into the types and encoded again is the same: the values of the charts, values
// that are zero or empty, and nothing.
func TestRoundTrip(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the generated types")
	}
	documents := map[string][]any{
		"bitnami": {
			decoded(t, `{"global": {}, "commonLabels": {}, "image": {"tag": "", "pullSecrets": []}, "extraFlags": [], "metrics": {"enabled": false, "extraArgs": []}}`),
			decoded(t, `{"primary": {"count": 0, "livenessProbe": {"enabled": false, "httpGet": {"port": "http"}}, "resources": {}, "tolerations": [], "pdb": {"minAvailable": "50%"}, "service": {"nodePorts": {"cache": 30000}}}}`),
			decoded(t, `{"primary": {"podSecurityContext": {"runAsNonRoot": false}, "revisionHistoryLimit": "", "persistence": {"accessModes": [], "selector": {}}}}`),
		},
		"helmdocs": {
			decoded(t, `{"replicaCount": 0, "settings": {"a": null, "b": [1, "x"]}, "adminPort": 0, "ratio": 0.25, "ingress": {"hosts": [], "tls": []}, "mixture": [1.5, {}, null], "matrix": [[], [0]]}`),
			decoded(t, `{"ports": [], "env": [], "ingress": {"hosts": [{"paths": []}, {}]}, "replica_count": 0, "Replica-Count": 1, "REPLICACOUNT": 2, "9to5": false}`),
			decoded(t, `{"ratio": 1, "image": {}, "podAnnotations": {"": ""}}`),
		},
		"schema": {
			decoded(t, `{"threshold": 0, "backends": {"x": {}, "y": {"weight": 0}}, "features": [], "custom": false, "remote": "", "tree": {"left": {"left": {"left": {}}}}}`),
			decoded(t, `{"backends": {}, "custom": {}, "tolerations": [{}], "license": "", "port": "http"}`),
		},
	}
	for folder := range documents {
		text, err := os.ReadFile(filepath.Join("testdata", folder, "values.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		own, err := parseValues(text)
		if err != nil {
			t.Fatal(err)
		}
		delete(own.value, "a,b")
		if primary, ok := own.value["primary"].(map[string]any); ok {
			// The empty object stands for a number that is not set.
			delete(primary["pdb"].(map[string]any), "minAvailable")
		}
		// A null in values.yaml is no value.
		documents[folder] = append(documents[folder], withoutNull(own.value), map[string]any{})
	}
	input, err := json.Marshal(documents)
	if err != nil {
		t.Fatal(err)
	}
	dir := module(t)
	write(t, filepath.Join(dir, "main.go"), roundTrip)
	output := run(t, dir, string(input), "go", "run", "-mod=mod", ".")
	want := decoded(t, string(input)).(map[string]any)
	got := decoded(t, string(output)).(map[string]any)
	for _, folder := range slices.Sorted(maps.Keys(want)) {
		if diff := cmp.Diff(want[folder], got[folder]); diff != "" {
			t.Errorf("the values of %s differ after a round trip (-want +got):\n%s", folder, diff)
		}
	}
}

func decoded(t *testing.T, text string) any {
	t.Helper()
	value, err := decodeJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func withoutNull(value any) any {
	if object, ok := value.(map[string]any); ok {
		maps.DeleteFunc(object, func(_ string, inner any) bool { return withoutNull(inner) == nil })
	}
	return value
}
