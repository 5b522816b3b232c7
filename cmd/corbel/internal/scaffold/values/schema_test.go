// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/check"
)

// property is a schema with one property.
func property(schema string) string { return fmt.Sprintf(`{"properties": {"a": %s}}`, schema) }

func TestLearnFromSchema(t *testing.T) {
	runLessons(t, []lesson{
		{name: "types without values", schema: `{"properties": {"s": {"type": "string"}, "b": {"type": ["null", "boolean"]}, "n": {"type": "number"}, "i": {"type": "integer", "description": "One."}}}`,
			want: []string{"b Bool Schema", `i Integer Schema "One."`, "n Number Schema", "s String Schema"}},
		{name: "the schema wins", values: "# -- (string) Of the comment\na: 1", schema: property(`{"type": ["string", "integer"], "description": "Of the schema"}`),
			want: []string{`a IntOrString Schema default=1 "Of the schema"`}},
		{name: "a default that the schema does not allow", values: `a: ""`, schema: property(`{"type": "integer"}`), want: []string{"a Integer Schema"}},
		{name: "a schema without details leaves them to the name", values: "tolerations: []\nresources: {}\nother: {x: 1}",
			schema: `{"properties": {"tolerations": {"type": "array", "items": {"type": "object"}}, "resources": {"type": "object"}, "other": {"type": "object"}}}`,
			want: []string{
				"tolerations List Name default=[]", "tolerations[] Core corev1.Toleration Name", "resources Core corev1.ResourceRequirements Name default=map[]",
				"other Object Value", "other.x Integer Value default=1",
			}},
		{name: "but not another type", values: "tolerations:", schema: `{"properties": {"tolerations": {"type": "string"}}}`, want: []string{"tolerations String Schema"}},
		{name: "keys of the values beside those of the schema", values: "a: {x: 1}", schema: property(`{"properties": {"y": {"type": "string"}}}`),
			want: []string{"a Object Schema", "a.x Integer Value default=1", "a.y String Schema"}},
		{name: "maps", schema: `{"properties": {"m": {"additionalProperties": {"type": "string"}}, "p": {"patternProperties": {"^x": {"type": "integer"}}}, "a": {"type": "object", "additionalProperties": true}}}`,
			want:  []string{"a Map Schema", "a[] Any None", "m Map Schema", "m[] String Schema", "p Map Schema", "p[] Integer Schema"},
			notes: []string{"a has elements of any type: its schema"}},
		{name: "alternatives", schema: `{"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}, "b": {"anyOf": [{"type": "null"}, {"type": "string", "minLength": 1}]}, "c": {"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "d": {"type": "string", "anyOf": [{"minLength": 1}]}, "e": {"oneOf": [{"type": "integer"}, {"type": "number"}]}}}`,
			want:  []string{"a IntOrString Schema", "b String Schema minLength=1", "c Any Schema", "d String Schema", "e Number Schema"},
			notes: []string{"c accepts any value: it has one of several types"}},
		{name: "restrictions", schema: `{"properties": {"i": {"type": "integer", "minimum": 1.5, "exclusiveMaximum": 10}, "j": {"type": "integer", "minimum": 1, "exclusiveMinimum": true}, "n": {"type": "number", "exclusiveMinimum": 0.5}, "s": {"enum": ["x", null, "y"]}, "c": {"const": 3}, "big": {"type": "integer", "maximum": 1e300}}}`,
			want: []string{"big Integer Schema", "c Integer Schema enum=[3]", "i Integer Schema min=2 max=9", "j Integer Schema min=2", "n Number Schema min=0.5", "s String Schema enum=[x y]"}},
		{name: "a pattern of another language", schema: property(`{"type": "string", "pattern": "^(?!x)"}`), want: []string{"a String Schema"}, notes: []string{"a has a pattern"}},
		{name: "required", values: "x: 1", schema: `{"required": ["x", "y"], "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}`,
			want: []string{"x Integer Schema default=1", "y String Schema required"}},
		{name: "whole numbers by name", values: "replicas: 2\nratio: 2", schema: `{"properties": {"replicas": {"type": "number"}, "ratio": {"type": "number"}}}`,
			want: []string{"replicas Integer Schema default=2", "ratio Number Schema default=2"}},
		{name: "references", schema: `{"$ref": "#/$defs/root", "$defs": {"root": {"properties": {"a": {"$ref": "#/$defs/x~1y%20z", "description": "Own"}}}, "x/y z": {"type": "string", "description": "Shared"}}}`,
			want: []string{`a String Schema "Own"`}},
		{name: "references to Kubernetes types", schema: `{"properties": {"a": {"$ref": "https://example.com/v1.json#/definitions/io.k8s.api.core.v1.Affinity"}, "b": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.api.resource.Quantity"}, "c": {"items": {"$ref": "io.k8s.api.core.v1.EnvVar"}}}}`,
			want: []string{"a Core corev1.Affinity Schema", "b IntOrString Schema", "c List Schema", "c[] Core corev1.EnvVar Schema"}},
		{name: "references to nowhere", values: "a: x", schema: property(`{"$ref": "https://example.com/x.json"}`),
			want: []string{"a String Value default=x"}, notes: []string{`a refers to the schema "https://example.com/x.json"`}},
		{name: "a reference to itself", schema: property(`{"$ref": "#/properties/a"}`), want: []string{"a Any None"},
			notes: []string{"a has a schema that refers to itself", "a accepts any value"}},
		{name: "a Kubernetes type that is unknown", schema: property(`{"$core": "os.File", "type": "string"}`), want: []string{"a String Schema"}},
		{name: "allOf", schema: property(`{"allOf": [{"properties": {"x": {"type": "string"}}, "required": ["x"]}, {"properties": {"y": {"type": "integer"}}}]}`),
			want: []string{"a Object Schema", "a.x String Schema required", "a.y Integer Schema"}},
	})
}

func TestLearnRefuses(t *testing.T) {
	for _, test := range []struct{ name, values, schema, want string }{
		{"no YAML", "a: [", "", "values.yaml is not valid YAML"},
		{"no object", "- a", "", "values.yaml is a list; it has to be an object with keys"},
		{"no JSON number", "a: .inf", "", "values.yaml is not valid YAML"},
		{"no JSON", "", "{", "values.schema.json is not valid JSON"},
		{"no schema", "", "[]", "values.schema.json is a list"},
		{"both", "- a", "{", "values.schema.json is not valid JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := Learn(Source{Values: []byte(test.values), Schema: []byte(test.schema)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, not %q", err, test.want)
			}
		})
	}
}

// A small schema whose references make a huge tree, and a value that is nested deep.
func TestLearnIsBounded(t *testing.T) {
	definitions := map[string]any{}
	for i := range 14 {
		properties := map[string]any{}
		for j := range 12 {
			properties[fmt.Sprint("p", j)] = map[string]any{"$ref": fmt.Sprint("#/$defs/d", i+1)}
		}
		definitions[fmt.Sprint("d", i)] = map[string]any{"properties": properties}
	}
	definitions["d14"] = map[string]any{"type": "string"}
	schema := check.Must(json.Marshal(map[string]any{"$ref": "#/$defs/d0", "$defs": definitions}))(t)
	start := time.Now()
	root, notes, err := Learn(Source{Values: []byte(strings.Repeat("{a: ", 40) + "1" + strings.Repeat("}", 40)), Schema: schema})
	check.NoError(t, err)
	if total, _ := Leaves(root); total > maxFields {
		t.Errorf("the tree has %d leaves", total)
	}
	all := strings.Join(notes, "\n")
	check.Contains(t, all, "is nested deeper than 12 levels", "the chart has more than 20000 values")
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
