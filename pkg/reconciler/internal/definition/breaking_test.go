// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

// base is a definition as the server answers it.
const base = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: queues.queue.example.com}
spec:
  group: queue.example.com
  scope: Namespaced
  names: {kind: Queue, plural: queues, singular: queue, listKind: QueueList, shortNames: [q]}
  conversion: {strategy: None}
  versions:
  - name: v1beta1
    served: true
    storage: false
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [name]
            properties:
              name: {type: string, minLength: 1, maxLength: 63, pattern: "^[a-z]+$"}
              size: {type: integer, format: int32, minimum: 1, maximum: 10, default: 3}
              ratio: {type: number, multipleOf: 0.5}
              mode: {type: string, enum: [fast, safe, old]}
              port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
              comment: {type: string, nullable: true}
              labels: {type: object, additionalProperties: {type: string}}
              hosts: {type: array, maxItems: 5, items: {type: string}, x-kubernetes-list-type: set}
              ports:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items: {type: object, required: [name], properties: {name: {type: string}, number: {type: integer}}}
              values: {type: object, x-kubernetes-preserve-unknown-fields: true}
              template: {type: object, x-kubernetes-map-type: granular, properties: {metadata: {type: object, properties: {note: {type: string}}}}}
              choice:
                type: object
                properties: {a: {type: string}, b: {type: string}}
                anyOf: [{required: [a]}, {required: [b]}]
                oneOf: [{required: [a]}, {required: [b]}]
            x-kubernetes-validations: [{rule: "self.name != 'x'", message: no x}]
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    selectableFields: [{jsonPath: .spec.mode}]
  - name: v1
    served: true
    storage: true
    schema: *schema
    subresources: {status: {}}
status:
  storedVersions: [v1]
`

// parsed returns the base with edits: each is a text and its replacement.
func parsed(t *testing.T, edits ...string) map[string]any {
	t.Helper()
	content := base
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(content, edits[i]) {
			t.Fatalf("the definition lacks %q", edits[i])
		}
		content = strings.ReplaceAll(content, edits[i], edits[i+1])
	}
	var object map[string]any
	check.NoError(t, yaml.Unmarshal([]byte(content), &object))
	return object
}

func edits(texts ...string) []string { return texts }

// TestBreakingChangesAreRefused has changes that break something, each with the rule that says so.
func TestBreakingChangesAreRefused(t *testing.T) {
	v1beta1 := base[strings.Index(base, "  - name: v1beta1"):strings.Index(base, "  - name: v1\n")]
	anchored := strings.Replace(v1beta1, "&schema", "", 1)
	schema := strings.TrimSuffix(anchored[strings.Index(anchored, "\n      openAPIV3Schema"):strings.Index(anchored, "    subresources")], "\n")
	tests := []struct {
		name          string
		live, desired []string
		want          Rule
		path          string
	}{
		{name: "another kind", desired: edits("kind: Queue,", "kind: Line,"), want: NamesChanged},
		{name: "another kind of lists", desired: edits("listKind: QueueList", "listKind: Queues"), want: NamesChanged},
		{name: "another plural", desired: edits("plural: queues", "plural: lines"), want: NamesChanged},
		{name: "another group", desired: edits("  group: queue.example.com", "  group: other.example.com"), want: NamesChanged},
		{name: "another scope", desired: edits("scope: Namespaced", "scope: Cluster"), want: ScopeChanged},
		{name: "a stored version is removed", live: edits("storedVersions: [v1]", "storedVersions: [v1beta1, v1]"),
			desired: edits(v1beta1, "", "schema: *schema", "schema:"+schema), want: StoredVersionRemoved},
		{name: "a served version is removed", desired: edits(v1beta1, "", "schema: *schema", "schema:"+schema), want: ServedVersionRemoved},
		{name: "a version is not served any more", desired: edits("served: true\n    storage: false", "served: false\n    storage: false"), want: ServedVersionRemoved},
		{name: "the conversion is removed", live: edits("strategy: None", "strategy: Webhook"), want: ConversionRemoved},
		{name: "the subresource status is removed", desired: edits("subresources: {status: {}}\nstatus", "x: y\nstatus"), want: SubresourceRemoved},
		{name: "the subresource scale is removed", desired: edits(", scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}", ""), want: SubresourceRemoved},
		{name: "the subresource scale is about another field", desired: edits("specReplicasPath: .spec.size", "specReplicasPath: .spec.other"), want: SubresourceRemoved},
		{name: "a selectable field is removed", desired: edits("[{jsonPath: .spec.mode}]", "[]"), want: SelectorRemoved, path: ".spec.mode"},
		{name: "unknown fields are pruned everywhere", live: edits("  conversion:", "  preserveUnknownFields: true\n  conversion:"), want: UnknownFieldsPruned},
		{name: "a field is removed", desired: edits("              mode: {type: string, enum: [fast, safe, old]}\n", ""), want: FieldRemoved, path: ".spec.mode"},
		{name: "a field of an element is removed", desired: edits(", number: {type: integer}", ""), want: FieldRemoved, path: ".spec.ports[*].number"},
		{name: "a nested field is removed", desired: edits(", properties: {note: {type: string}}", ""), want: FieldRemoved, path: ".spec.template.metadata.note"},
		{name: "a map becomes an object", desired: edits("additionalProperties: {type: string}", "properties: {app: {type: string}}"), want: FieldRemoved, path: ".spec.labels[*]"},
		{name: "unknown fields are pruned", desired: edits(", x-kubernetes-preserve-unknown-fields: true", ""), want: UnknownFieldsPruned, path: ".spec.values"},
		{name: "a text becomes a number", desired: edits("name: {type: string, minLength: 1, maxLength: 63, pattern: \"^[a-z]+$\"}", "name: {type: integer}"), want: TypeChanged, path: ".spec.name"},
		{name: "a number becomes an integer", desired: edits("ratio: {type: number, multipleOf: 0.5}", "ratio: {type: integer}"), want: TypeChanged, path: ".spec.ratio"},
		{name: "integer or string becomes string", desired: edits("port: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}", "port: {type: string}"), want: TypeChanged, path: ".spec.port"},
		{name: "an object becomes a list", desired: edits("labels: {type: object, additionalProperties: {type: string}}", "labels: {type: array, items: {type: string}}"), want: TypeChanged, path: ".spec.labels"},
		{name: "the values of a map change their type", desired: edits("additionalProperties: {type: string}", "additionalProperties: {type: boolean}"), want: TypeChanged, path: ".spec.labels[*]"},
		{name: "elements change their type", desired: edits("maxItems: 5, items: {type: string}", "maxItems: 5, items: {type: integer}"), want: TypeChanged, path: ".spec.hosts[*]"},
		{name: "any value becomes a text", live: edits("comment: {type: string, nullable: true}", "comment: {x-kubernetes-preserve-unknown-fields: true}"), want: TypeChanged, path: ".spec.comment"},
		{name: "a field that was unknown gets a type", desired: edits("values: {type: object,", "values: {type: object, properties: {image: {type: string}},"), want: TypeChanged, path: ".spec.values.image"},
		{name: "a field becomes required", desired: edits("required: [name]\n            properties", "required: [name, mode]\n            properties"), want: FieldRequired, path: ".spec.mode"},
		{name: "a new field is required", desired: edits("required: [name]\n            properties:", "required: [name, owner]\n            properties:\n              owner: {type: string}"), want: FieldRequired, path: ".spec.owner"},
		{name: "a default changes", desired: edits("default: 3", "default: 4"), want: DefaultChanged, path: ".spec.size"},
		{name: "a default is removed", desired: edits(", default: 3", ""), want: DefaultChanged, path: ".spec.size"},
		{name: "a field with a default becomes an unknown one", live: edits("note: {type: string}", "note: {type: string, default: x}"),
			desired: edits("template: {type: object, x-kubernetes-map-type: granular, properties: {metadata: {type: object, properties: {note: {type: string}}}}}", "template: {type: object, properties: {metadata: {type: object, x-kubernetes-preserve-unknown-fields: true}}}"),
			want:    DefaultChanged, path: ".spec.template.metadata.note"},
		{name: "a value of an enum is removed", desired: edits("[fast, safe, old]", "[fast, safe]"), want: ValuesRemoved, path: ".spec.mode"},
		{name: "an enum is added", desired: edits("comment: {type: string,", "comment: {type: string, enum: [a],"), want: ValuesRemoved, path: ".spec.comment"},
		{name: "null is not allowed", desired: edits(", nullable: true", ""), want: ValuesRemoved, path: ".spec.comment"},
		{name: "a higher minimum", desired: edits("minimum: 1,", "minimum: 2,"), want: BoundTightened, path: ".spec.size"},
		{name: "a lower maximum", desired: edits("maximum: 10", "maximum: 9"), want: BoundTightened, path: ".spec.size"},
		{name: "a new maximum", desired: edits("ratio: {type: number,", "ratio: {type: number, maximum: 1,"), want: BoundTightened, path: ".spec.ratio"},
		{name: "a new minimum", desired: edits("ratio: {type: number,", "ratio: {type: number, minimum: 0,"), want: BoundTightened, path: ".spec.ratio"},
		{name: "an exclusive maximum", desired: edits("maximum: 10", "maximum: 10, exclusiveMaximum: true"), want: BoundTightened, path: ".spec.size"},
		{name: "a longer text", desired: edits("minLength: 1", "minLength: 2"), want: BoundTightened, path: ".spec.name"},
		{name: "a shorter text", desired: edits("maxLength: 63", "maxLength: 62"), want: BoundTightened, path: ".spec.name"},
		{name: "fewer elements", desired: edits("maxItems: 5", "maxItems: 4"), want: BoundTightened, path: ".spec.hosts"},
		{name: "a minimum of elements", desired: edits("maxItems: 5", "maxItems: 5, minItems: 1"), want: BoundTightened, path: ".spec.hosts"},
		{name: "fewer keys", desired: edits("additionalProperties: {type: string}", "maxProperties: 3, additionalProperties: {type: string}"), want: BoundTightened, path: ".spec.labels"},
		{name: "another multiple", desired: edits("multipleOf: 0.5", "multipleOf: 0.3"), want: BoundTightened, path: ".spec.ratio"},
		{name: "unique elements", desired: edits("maxItems: 5", "maxItems: 5, uniqueItems: true"), want: BoundTightened, path: ".spec.hosts"},
		{name: "another pattern", desired: edits("^[a-z]+$", "^[a-y]+$"), want: PatternChanged, path: ".spec.name"},
		{name: "a new pattern", desired: edits("comment: {type: string,", "comment: {type: string, pattern: x,"), want: PatternChanged, path: ".spec.comment"},
		{name: "a new format", desired: edits("comment: {type: string,", "comment: {type: string, format: date-time,"), want: PatternChanged, path: ".spec.comment"},
		{name: "an expression", desired: edits("message: no x}", "message: no x}, {rule: 'self.size > 1'}"), want: ValidationAdded, path: ".spec"},
		{name: "allOf", desired: edits("comment: {type: string,", "comment: {type: string, allOf: [{maxLength: 3}],"), want: ValidationAdded, path: ".spec.comment"},
		{name: "fewer alternatives", desired: edits("anyOf: [{required: [a]}, {required: [b]}]", "anyOf: [{required: [a]}]"), want: ValidationAdded, path: ".spec.choice"},
		{name: "other alternatives", desired: edits("oneOf: [{required: [a]}, {required: [b]}]", "oneOf: [{required: [a]}, {required: [a, b]}]"), want: ValidationAdded, path: ".spec.choice"},
		{name: "not", desired: edits("comment: {type: string,", "comment: {type: string, not: {enum: [x]},"), want: ValidationAdded, path: ".spec.comment"},
		{name: "an embedded object", desired: edits("x-kubernetes-preserve-unknown-fields: true", "x-kubernetes-preserve-unknown-fields: true, x-kubernetes-embedded-resource: true"), want: ValidationAdded, path: ".spec.values"},
		{name: "a list is merged in another way", desired: edits("x-kubernetes-list-type: set", "x-kubernetes-list-type: atomic"), want: MergingChanged, path: ".spec.hosts"},
		{name: "a list is merged by another key", desired: edits("x-kubernetes-list-map-keys: [name]", "x-kubernetes-list-map-keys: [number]"), want: MergingChanged, path: ".spec.ports"},
		{name: "a map is merged in another way", desired: edits("x-kubernetes-map-type: granular", "x-kubernetes-map-type: atomic"), want: MergingChanged, path: ".spec.template"},
		{name: "a keyword that is not known", desired: edits("comment: {type: string,", "comment: {type: string, x-kubernetes-new: true,"), want: UnknownChange, path: ".spec.comment"},
		{name: "another version is stored without a conversion, and lacks a field",
			live:    edits("schema: *schema", "schema:"+strings.Replace(schema, "              comment:", "              extra: {type: string}\n              comment:", 1)),
			desired: edits("served: true\n    storage: false", "served: true\n    storage: true", "served: true\n    storage: true\n    schema: *schema", "served: true\n    storage: false\n    schema:"+strings.Replace(schema, "              comment:", "              extra: {type: string}\n              comment:", 1)),
			want:    FieldRemoved, path: ".spec.extra"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			changes := Breaking(parsed(t, test.live...), parsed(t, test.desired...))
			if !slices.ContainsFunc(changes, func(c Change) bool { return c.Rule == test.want && c.Path == test.path }) {
				t.Errorf("got %v, want %s of %q", changes, test.want, test.path)
			}
			for _, change := range changes {
				if change.Rule != test.want || !strings.HasSuffix(change.String(), " ("+string(test.want)+")") {
					t.Errorf("got %v as well", change)
				}
			}
		})
	}
}

// TestHarmlessChangesAreAccepted has changes that break nothing.
func TestHarmlessChangesAreAccepted(t *testing.T) {
	tests := []struct {
		name          string
		live, desired []string
	}{
		{name: "nothing"},
		{name: "what the server fills in is missing", desired: edits(", listKind: QueueList", "", "  conversion: {strategy: None}\n", "", "status:\n  storedVersions: [v1]\n", "")},
		{name: "numbers from JSON and from YAML", desired: edits("maximum: 10", "maximum: 10.0", "default: 3", "default: 3.0")},
		{name: "another short name", desired: edits("shortNames: [q]", "shortNames: [qu], categories: [all]")},
		{name: "an optional field", desired: edits("              mode:", "              fresh: {type: string, maxLength: 3, enum: [a]}\n              mode:")},
		{name: "an optional object with a required field", desired: edits("              mode:", "              fresh: {type: object, required: [a], properties: {a: {type: string}}}\n              mode:")},
		{name: "a required field with a default", desired: edits("required: [name]\n            properties:", "required: [name, owner]\n            properties:\n              owner: {type: string, default: me}")},
		{name: "a field is not required any more", desired: edits("            required: [name]\n", "")},
		{name: "a default for a field without", desired: edits("comment: {type: string,", "comment: {type: string, default: none,")},
		{name: "a value of an enum", desired: edits("[fast, safe, old]", "[fast, safe, old, new]")},
		{name: "no enum", desired: edits(", enum: [fast, safe, old]", "")},
		{name: "null is allowed", desired: edits("mode: {type: string,", "mode: {type: string, nullable: true,")},
		{name: "wider bounds", desired: edits("minimum: 1, maximum: 10", "minimum: 0, maximum: 11", "minLength: 1, maxLength: 63", "maxLength: 253", "maxItems: 5", "maxItems: 6, minItems: 0", "multipleOf: 0.5", "multipleOf: 0.25")},
		{name: "no bounds", desired: edits("minimum: 1, maximum: 10, ", "", ", pattern: \"^[a-z]+$\"", "")},
		{name: "an integer becomes a number", desired: edits("size: {type: integer, format: int32,", "size: {type: number,")},
		{name: "a text becomes integer or string", desired: edits("name: {type: string, minLength: 1, maxLength: 63, pattern: \"^[a-z]+$\"}", "name: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}")},
		{name: "a text becomes any value", desired: edits("comment: {type: string, nullable: true}", "comment: {x-kubernetes-preserve-unknown-fields: true, nullable: true}")},
		{name: "a wider format", desired: edits("format: int32", "format: int64")},
		{name: "unknown fields are kept", desired: edits("template: {type: object, x-kubernetes-map-type: granular, properties: {metadata: {type: object, properties: {note: {type: string}}}}}", "template: {type: object, x-kubernetes-preserve-unknown-fields: true}")},
		{name: "unknown fields are kept one level higher",
			live:    edits("properties: {note: {type: string}}", "nullable: true, x-kubernetes-preserve-unknown-fields: true"),
			desired: edits("template: {type: object, x-kubernetes-map-type: granular, properties: {metadata: {type: object, properties: {note: {type: string}}}}}", "template: {type: object, x-kubernetes-preserve-unknown-fields: true}")},
		{name: "an object becomes a map", desired: edits("properties: {note: {type: string}}", "additionalProperties: {type: string}")},
		{name: "descriptions", desired: edits("mode: {type: string,", "mode: {type: string, description: how, example: fast, title: Mode,")},
		{name: "another message of an expression", desired: edits("message: no x", "message: not x")},
		{name: "no expression", desired: edits("            x-kubernetes-validations: [{rule: \"self.name != 'x'\", message: no x}]\n", "")},
		{name: "one more alternative", desired: edits("anyOf: [{required: [a]}, {required: [b]}]", "anyOf: [{required: [a]}, {required: [b]}, {required: [c]}]")},
		{name: "a version", desired: edits("  - name: v1\n", "  - name: v2\n    served: true\n    storage: false\n    schema: {openAPIV3Schema: {type: object}}\n  - name: v1\n")},
		{name: "another version is stored, with the same schema", desired: edits("served: true\n    storage: false", "served: true\n    storage: true", "served: true\n    storage: true\n    schema: *schema", "served: true\n    storage: false\n    schema: *schema")},
		{name: "a version that is neither served nor stored is removed",
			live:    edits("  - name: v1\n", "  - name: v1alpha1\n    served: false\n    storage: false\n    schema: {openAPIV3Schema: {type: object}}\n  - name: v1\n"),
			desired: nil},
		{name: "a version is deprecated", desired: edits("  - name: v1beta1\n", "  - name: v1beta1\n    deprecated: true\n")},
		{name: "a conversion webhook", desired: edits("strategy: None", "strategy: Webhook")},
		{name: "a column and a subresource", desired: edits("    subresources: {status: {}}\n", "    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}\n    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]\n")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if changes := Breaking(parsed(t, test.live...), parsed(t, test.desired...)); len(changes) > 0 {
				t.Errorf("got %v", changes)
			}
		})
	}
}

func TestAChangeIsASentence(t *testing.T) {
	changes := Breaking(parsed(t), parsed(t, "maximum: 10", "maximum: 9"))
	want := []string{
		"version v1beta1: .spec.size: maximum changes from 10 to 9 (BoundTightened)",
		"version v1: .spec.size: maximum changes from 10 to 9 (BoundTightened)",
	}
	var got []string
	for _, change := range changes {
		got = append(got, change.String())
	}
	check.Equal(t, want, got)
}
