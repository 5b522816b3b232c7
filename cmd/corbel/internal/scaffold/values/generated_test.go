// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"sigs.k8s.io/yaml"
)

// moduleRoot is the folder of go.mod.
const moduleRoot = "../../../../.."

// module writes a module with the types of all charts into a temporary folder. It needs what this
// module needs, so that nothing is loaded.
func module(t *testing.T, kinds bool) string {
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
		if kinds {
			code.Source += fmt.Sprintf("\n// %[1]s has values.\n// +kubebuilder:object:root=true\ntype %[1]s struct {\n\tobject.TypeMeta `json:\",inline\"`\n\tobject.ObjectMeta `json:\"metadata,omitempty\"`\n\tSpec %[1]sValues `json:\"spec\"`\n}\n", name)
			code.Imports = append(code.Imports, `object "k8s.io/apimachinery/pkg/apis/meta/v1"`)
		}
		write(t, filepath.Join(dir, folder, "types.go"), strings.Replace(file(folder, code), "package ", "// +kubebuilder:object:generate=true\n// +groupName="+folder+".example.com\n\npackage ", 1))
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
	dir := module(t, false)
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

// controllerGen returns the program, or skips the test.
func controllerGen(t *testing.T) string {
	t.Helper()
	if program, err := filepath.Abs(filepath.Join(moduleRoot, "bin/tools/controller-gen")); err == nil {
		if _, err := os.Stat(program); err == nil {
			return program
		}
	}
	program, err := exec.LookPath("controller-gen")
	if err != nil {
		t.Skip("controller-gen is missing: make bin/tools/controller-gen builds it")
	}
	return program
}

// controller-gen makes structural schemas of the types.
func TestCustomResourceDefinitions(t *testing.T) {
	program := controllerGen(t)
	dir := module(t, true)
	run(t, dir, "", program, "object", "crd", "paths=./...", "output:crd:dir=crds")
	// The types and their DeepCopy methods compile.
	run(t, dir, "", "go", "build", "-mod=mod", "./...")
	for folder, name := range charts {
		t.Run(folder, func(t *testing.T) {
			spec := specSchema(t, filepath.Join(dir, "crds", fmt.Sprintf("%s.example.com_%s.yaml", folder, plural(name))))
			for path, want := range expectedSchemas[folder] {
				if diff := cmp.Diff(decoded(t, want), plain(t, at(t, spec, path))); diff != "" {
					t.Errorf("the schema of %s differs (-want +got):\n%s", path, diff)
				}
			}
		})
	}
}

// expectedSchemas are the schemas of some values, without their descriptions.
var expectedSchemas = map[string]map[string]string{
	"bitnami": {
		"primary.count":                   `{"type": "integer", "format": "int64", "default": 1}`,
		"primary.livenessProbe.enabled":   `{"type": "boolean", "default": true}`,
		"primary.livenessProbe.exec":      `{"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "atomic"}}}`,
		"primary.pdb.minAvailable":        `{"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}`,
		"metrics.extraArgs":               `{"x-kubernetes-preserve-unknown-fields": true}`,
		"configuration":                   `{"type": "string", "default": "# A line that is no comment.\nappendonly yes"}`,
		"image.tag":                       `{"type": "string"}`,
		"primary.persistence.accessModes": `{"type": "array", "items": {"type": "string"}}`,
	},
	"helmdocs": {
		"ratio":          `{"type": "number", "minimum": 0, "maximum": 1, "default": 0.5}`,
		"timeout":        `{"type": "integer", "format": "int64", "minimum": 1, "maximum": 600}`,
		"logLevel":       `{"type": "string", "enum": ["debug", "info", "warn"], "default": "info"}`,
		"nameOverride":   `{"type": "string", "maxLength": 63, "pattern": "^[a-z0-9-]*$"}`,
		"adminPort":      `{"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true, "default": "http"}`,
		"settings":       `{"type": "object", "additionalProperties": {"x-kubernetes-preserve-unknown-fields": true}}`,
		"serviceAccount": `{"type": "object", "properties": {"annotations": {"type": "object", "additionalProperties": {"type": "string"}}, "create": {"type": "boolean", "default": true}}}`,
	},
	"schema": {
		"features":  `{"type": "array", "items": {"type": "string", "enum": ["a", "b", "c;d", "e\"f"]}}`,
		"license":   `{"type": "string", "minLength": 1}`,
		"threshold": `{"type": "number", "minimum": 0.25, "maximum": 1, "default": 0.75}`,
		"backends":  `{"type": "object", "additionalProperties": {"type": "object", "properties": {"url": {"type": "string", "pattern": "^https?://[\"` + "`" + `]?"}, "weight": {"type": "integer", "format": "int64"}}}}`,
	},
}

func plural(name string) string {
	return strings.ToLower(strings.TrimSuffix(name, "y")) + "s"
}

// specSchema reads a definition, checks that its schema is structural and returns that of the spec.
func specSchema(t *testing.T, path string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(text, &definition); err != nil {
		t.Fatal(err)
	}
	props := definition.Spec.Versions[0].Schema.OpenAPIV3Schema
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, &internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(&internal)
	if err != nil {
		t.Fatal(err)
	}
	if problems := structuralschema.ValidateStructural(nil, structural); len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	return props.Properties["spec"]
}

// at returns the schema of a value.
func at(t *testing.T, schema apiextensionsv1.JSONSchemaProps, path string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	for _, key := range strings.Split(path, ".") {
		property, ok := schema.Properties[key]
		if !ok {
			t.Fatalf("there is no schema for %s", path)
		}
		schema = property
	}
	return schema
}

// plain returns a schema as JSON without descriptions.
func plain(t *testing.T, schema apiextensionsv1.JSONSchemaProps) any {
	t.Helper()
	data, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	return undescribed(decoded(t, string(data)))
}

func undescribed(value any) any {
	switch v := value.(type) {
	case map[string]any:
		if _, isText := v["description"].(string); isText {
			delete(v, "description")
		}
		for _, inner := range v {
			undescribed(inner)
		}
	case []any:
		for _, inner := range v {
			undescribed(inner)
		}
	}
	return value
}
