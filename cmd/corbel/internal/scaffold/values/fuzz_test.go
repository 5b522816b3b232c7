// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// What Learn accepts, GoTypes writes as formatted Go with unique names and JSON keys.
func FuzzLearn(f *testing.F) {
	f.Add("replicas: 1\nimage: {tag: x}\n", "")
	f.Add("# @schema type:[string, null];enum:[a, b]\na: b\n", `{"properties": {"a": {"$ref": "#"}}}`)
	f.Add("## @param a.b [object] +x\na: {b: {}}\n", `{"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}}`)
	f.Add("livenessProbe: {enabled: true}\nenv: [{name: x}]\n\"a b\": {a-b: 1, a_b: 2, A.B: 3}\n", `{"type": "object", "required": ["x"], "properties": {"x": {"pattern": "^`+"`"+`"}}}`)
	f.Add("a: &a [1, {b: 1}]\nc: *a\nd: |\n  # -- text\n", `{"allOf": [{"properties": {"e": {"items": {"type": ["null"]}}}}]}`)
	f.Add("auth: {password: x, existingSecret: \"\", \"api token\": \"\"}\n", "")
	f.Fuzz(func(t *testing.T, text, schema string) {
		root, _, err := Learn(Source{Values: []byte(text), Schema: []byte(schema)})
		if err != nil {
			return
		}
		for _, tree := range []*Field{root, curated(t, root, "")} {
			Refer(tree, Secrets(tree))
			code := check.Must(GoTypes(tree, "Fuzz"))(t)
			checkSource(t, file("fuzz", code))
		}
	})
}

// checkSource reports what is wrong with a Go file.
func checkSource(t *testing.T, source string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), "types.go", source, parser.ParseComments)
	if err != nil {
		t.Fatalf("%v:\n%s", err, source)
	}
	check.Must(format.Source([]byte(source)))(t)
	types := map[string]bool{}
	ast.Inspect(parsed, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.TypeSpec:
			if types[node.Name.Name] {
				t.Errorf("the type %s is declared more than once", node.Name.Name)
			}
			types[node.Name.Name] = true
		case *ast.StructType:
			checkStruct(t, node)
		}
		return true
	})
}

func checkStruct(t *testing.T, node *ast.StructType) {
	t.Helper()
	used := map[string]bool{}
	for _, field := range node.Fields.List {
		tag := check.Must(strconv.Unquote(field.Tag.Value))(t)
		key := reflect.StructTag(tag).Get("json")
		words := []string{"key " + key}
		for _, name := range field.Names {
			if !name.IsExported() {
				t.Errorf("%s is not exported", name.Name)
			}
			words = append(words, "name "+name.Name)
		}
		for _, word := range words {
			if used[word] {
				t.Errorf("the %s is used more than once in a struct", word)
			}
			used[word] = true
		}
	}
}
