// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/corbel-run/corbel/pkg/component"
)

// readmeFile has the table of the fields of the spec, between two comments.
const (
	readmeFile = "README.md"
	tableStart = "<!-- fields: written by make generate -->\n"
	tableEnd   = "<!-- end of fields -->\n"
)

// WriteFieldTable writes the table of the fields of the spec into the README of a project, and reports whether that
// has changed it. A README without the comments around the table stays as it is.
func WriteFieldTable(folder string) (changed bool, err error) {
	o, err := readRecord(folder)
	if err != nil || o.Former != nil || len(o.Kinds) > 0 { // the spec has the values of the chart, and no fields
		return false, err
	}
	readme, err := os.ReadFile(filepath.Join(folder, readmeFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	names, err := fs.Glob(os.DirFS(folder), path.Join("api", o.Version, "*.go"))
	if err != nil {
		return false, err
	}
	files := map[string][]byte{}
	for _, name := range names {
		if files[name], err = os.ReadFile(filepath.Join(folder, filepath.FromSlash(name))); err != nil {
			return false, err
		}
	}
	table, err := fieldTable(files, o)
	if err != nil {
		return false, err
	}
	updated := withTable(readme, table)
	if bytes.Equal(readme, updated) {
		return false, nil
	}
	return true, replaceFile(filepath.Join(folder, readmeFile), updated)
}

// withTable returns a README with another table. One without a place for it is returned as it is.
func withTable(readme []byte, table string) []byte {
	before, rest, hasStart := strings.Cut(string(readme), tableStart)
	_, after, hasEnd := strings.Cut(rest, tableEnd)
	if !hasStart || !hasEnd {
		return readme
	}
	return []byte(before + tableStart + table + tableEnd + after)
}

// tableOf returns the table of a README; empty if there is none.
func tableOf(readme []byte) string {
	_, rest, _ := strings.Cut(string(readme), tableStart)
	table, _, _ := strings.Cut(rest, tableEnd)
	return table
}

// sameTable puts the table of a newer README into those that it is merged with. It follows from the types, so that
// there is nothing to merge in it.
func sameTable(next []byte, sets ...map[string][]byte) {
	for _, files := range sets {
		if readme, ok := files[readmeFile]; ok && next != nil {
			files[readmeFile] = withTable(readme, tableOf(next))
		}
	}
}

// embedded are the parts of a spec that Corbel has ready. Their JSON names are those of the fields.
var embedded = map[string]struct {
	part                 any
	kind, fallback, what string
}{
	"SuspensionSpec":    {component.SuspensionSpec{}, "", "", "the component is left alone"},
	"TimeoutSpec":       {component.TimeoutSpec{}, "duration", "10m", "how long the component may take to become ready"},
	"RollbackSpec":      {component.RollbackSpec{}, "boolean", "false", "a revision that fails goes back to the last one that was ready"},
	"PatchesSpec":       {component.PatchesSpec{}, "", "", "change what the generator does not foresee"},
	"PlacementSpec":     {component.PlacementSpec{}, "string", "", "where the objects are put, and the name that they are rendered with; by default those of the component"},
	"ImpersonationSpec": {component.ImpersonationSpec{}, "string", "", "the service account that the objects are written by"},
	"ClientSpec":        {component.ClientSpec{}, "", "", "the kubeconfig of the cluster that the objects are put into"},
	"PolicySpec":        {component.PolicySpec{}, "string", "", "how the objects are adopted, updated and deleted"},
	"DriftSpec":         {component.DriftSpec{}, "string", "", "what happens when other clients change the objects"},
	"TypeSpec":          {component.TypeSpec{}, "", "", "the types that the objects bring"},
	"RequeueSpec":       {component.RequeueSpec{}, "duration", "", "how often the component is reconciled without a change"},
	"RetrySpec":         {component.RetrySpec{}, "duration", "", "how soon the component is tried again"},
	"ReapplySpec":       {component.ReapplySpec{}, "duration", "", "how often the objects are written without a change"},
	"RequirementsSpec":  {component.RequirementsSpec{}, "", "", "the objects that the component waits for, and the inputs that it takes from them"},
}

// fieldTable returns the table of the fields of a spec, as the Go files in the folder api declare them.
func fieldTable(files map[string][]byte, o Options) (string, error) {
	t := &tabulator{structs: map[string]*ast.StructType{}}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Dir(name) != path.Join("api", o.Version) || path.Ext(name) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, files[name], parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if spec, ok := node.(*ast.TypeSpec); ok {
				if of, isStruct := spec.Type.(*ast.StructType); isStruct {
					t.structs[spec.Name.Name] = of
				}
			}
			return true
		})
	}
	spec := t.structs[o.Kind+"Spec"]
	if spec == nil {
		return "", fmt.Errorf("the package api/%s has no struct %sSpec", o.Version, o.Kind)
	}
	t.out.WriteString("| field | type | default | what it is |\n|---|---|---|---|\n")
	t.fields(spec, "", 0)
	return t.out.String() + t.common.String(), nil
}

// tabulator writes the rows of a table. Those of what all components have come last.
type tabulator struct {
	structs     map[string]*ast.StructType
	out, common strings.Builder
}

// maxNested limits how deep types are followed, which may refer to themselves.
const maxNested = 12

// fields writes the rows of a struct.
func (t *tabulator) fields(of *ast.StructType, prefix string, depth int) {
	for _, field := range of.Fields.List {
		var tag string
		if field.Tag != nil {
			text, _ := strconv.Unquote(field.Tag.Value)
			tag = reflect.StructTag(text).Get("json")
		}
		key, options, _ := strings.Cut(tag, ",")
		name, isLocal := typeOf(field.Type)
		switch {
		case key == "-" || depth > maxNested:
		case len(field.Names) > 0 && key == "" && options != "inline":
		case key != "":
			t.field(field, prefix+key, depth)
		case isLocal && t.structs[name] != nil:
			t.fields(t.structs[name], prefix, depth+1)
		default:
			t.part(name, prefix)
		}
	}
}

// part writes a row for what is embedded from another package.
func (t *tabulator) part(name, prefix string) {
	known, ok := embedded[name]
	if !ok || prefix != "" {
		row(&t.out, prefix+"…", "fields of "+name, "", "")
		return
	}
	var keys []string
	of := reflect.TypeOf(known.part)
	for i := range of.NumField() {
		key, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	row(&t.common, strings.Join(keys, "`, `"), known.kind, known.fallback, known.what)
}

// field writes the row of a field, or those of the fields below it.
func (t *tabulator) field(field *ast.Field, at string, depth int) {
	kind, elem := describedType(field.Type)
	name, isLocal := typeOf(elem)
	if nested := t.structs[name]; isLocal && nested != nil {
		if kind != "" {
			at += "[]"
		}
		t.fields(nested, at+".", depth+1)
		return
	}
	doc, fallback := docOf(field)
	row(&t.out, at, kind+typeWord(name), fallback, doc)
}

// describedType returns what a type is a list or a map of, in words, and the innermost type.
func describedType(of ast.Expr) (words string, elem ast.Expr) {
	switch of := of.(type) {
	case *ast.StarExpr:
		return describedType(of.X)
	case *ast.ArrayType:
		words, elem = describedType(of.Elt)
		return "list of " + words, elem
	case *ast.MapType:
		words, elem = describedType(of.Value)
		return "map of " + words, elem
	default:
		return "", of
	}
}

// typeOf returns the name of a type without its package, and whether it is of this one.
func typeOf(of ast.Expr) (name string, isLocal bool) {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeOf(of.X)
	case *ast.Ident:
		return of.Name, true
	case *ast.SelectorExpr:
		return of.Sel.Name, false
	default:
		return "object", false
	}
}

// typeWord returns the name of a type in an API.
func typeWord(name string) string {
	switch name {
	case "bool":
		return "boolean"
	case "int", "int32", "int64":
		return "integer"
	case "JSON":
		return "any"
	case "IntOrString":
		return "integer or string"
	}
	return name
}

// chartDefault is the sentence with the default of a value in the comment of its field.
var chartDefault = regexp.MustCompile(`The chart sets (.+?) by default\.`)

// docOf returns the comment of a field without its markers and its default, and that default.
func docOf(field *ast.Field) (doc, fallback string) {
	var lines []string
	for line := range strings.Lines(field.Doc.Text()) {
		line = strings.TrimSpace(line)
		if value, ok := strings.CutPrefix(line, "+kubebuilder:default="); ok {
			fallback = unquoted(value)
		}
		if !strings.HasPrefix(line, "+") {
			lines = append(lines, line)
		}
	}
	doc = strings.Join(lines, " ")
	if of := chartDefault.FindStringSubmatch(doc); of != nil {
		doc, fallback = strings.TrimSpace(strings.Replace(doc, of[0], "", 1)), unquoted(of[1])
	}
	return doc, fallback
}

// unquoted returns the text that a string of JSON has; what is no such string is returned as it is.
func unquoted(value string) string {
	var text string
	if err := json.Unmarshal([]byte(value), &text); err != nil {
		return value
	}
	return text
}

// row writes a row.
func row(out *strings.Builder, at, kind, fallback, doc string) {
	cell := func(text string) string { return oneLine(strings.ReplaceAll(text, "|", `\|`), 160) }
	if fallback != "" {
		fallback = "`" + cell(strings.ReplaceAll(fallback, "`", "'")) + "`"
	}
	fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", strings.ReplaceAll(at, "|", `\|`), cell(kind), fallback, cell(doc))
}
