// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// typeOf is a type of a package, with the comment above it.
type typeOf struct {
	name    string
	comment comment
	expr    ast.Expr
}

// fieldOf is a field of a struct.
type fieldOf struct {
	name, typ string
	// json is the name in JSON; empty if there is none.
	json    string
	comment comment
	// embedded: the name is that of the type.
	embedded bool
}

// typ returns a type of a package.
func (s *source) typ(folder, name string) (typeOf, error) {
	p := s.packages[folder]
	if p == nil {
		return typeOf{}, fmt.Errorf("there is no package %s", folder)
	}
	for _, t := range p.types() {
		if t.name == name {
			return t, nil
		}
	}
	return typeOf{}, fmt.Errorf("package %s has no type %s", folder, name)
}

// types returns all types of the package.
func (p *pkg) types() []typeOf {
	var types []typeOf
	for _, file := range p.files {
		for _, declaration := range file.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				t := spec.(*ast.TypeSpec)
				doc := t.Doc
				if !group.Lparen.IsValid() {
					doc = group.Doc
				}
				types = append(types, typeOf{t.Name.Name, parseComment(doc), t.Type})
			}
		}
	}
	return types
}

// functions returns the exported functions of the package, in the order of the sources.
func (p *pkg) functions() []*ast.FuncDecl {
	var found []*ast.FuncDecl
	for _, file := range p.files {
		for _, declaration := range file.Decls {
			if f, ok := declaration.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
				found = append(found, f)
			}
		}
	}
	return found
}

// fields returns the exported fields of a struct.
func (t typeOf) fields() []fieldOf {
	structure, ok := t.expr.(*ast.StructType)
	if !ok {
		return nil
	}
	var fields []fieldOf
	for _, field := range structure.Fields.List {
		f := fieldOf{typ: text(field.Type), comment: parseComment(field.Doc)}
		if field.Tag != nil {
			tag, _ := strconv.Unquote(field.Tag.Value)
			f.json, _, _ = strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		}
		if len(field.Names) == 0 {
			f.name, f.embedded = f.typ[strings.LastIndex(f.typ, ".")+1:], true
			fields = append(fields, f)
		}
		for _, name := range field.Names {
			if f.name = name.Name; name.IsExported() && f.json != "-" {
				fields = append(fields, f)
			}
		}
	}
	return fields
}

// methods returns the names and the comments of the methods of an interface.
func (t typeOf) methods() (names []string, comments []comment) {
	methods, ok := t.expr.(*ast.InterfaceType)
	if !ok {
		return nil, nil
	}
	for _, method := range methods.Methods.List {
		for _, name := range method.Names {
			names, comments = append(names, name.Name), append(comments, parseComment(method.Doc))
		}
	}
	return names, comments
}
