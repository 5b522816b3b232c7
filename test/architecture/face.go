// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strings"
)

// Face counts the exported identifiers of one public package.
type Face struct {
	Package string
	// Names are the functions, types, constants and variables.
	Names int
	// Methods include the methods of interfaces.
	Methods int
	// Fields include embedded types.
	Fields int
}

// String is the line that hack/face prints.
func (f Face) String() string {
	return fmt.Sprintf("%-26s %4d names %4d methods %4d fields", f.Package, f.Names, f.Methods, f.Fields)
}

// faceLimit is the greatest sum that the public packages may have. Lower it with the sum.
var faceLimit = Face{Package: "all", Names: 470, Methods: 230, Fields: 551}

// Faces counts the exported identifiers of the public packages of the root module, without
// generated files. The last face is the sum.
func Faces(t *Tree) []Face { return faces(t, rooms) }

func faces(t *Tree, rooms []Room) []Face {
	var all []Face
	sum := Face{Package: "all"}
	for _, p := range t.ours() {
		if room, ok := roomOf(rooms, p.Path); !ok || !isPublic(room) || p.Module != "." {
			continue
		}
		face := Face{Package: p.Path}
		for _, file := range p.Files {
			if !file.Test && !strings.HasPrefix(path.Base(file.Path), "zz_generated") {
				face.add(file.Syntax)
			}
		}
		all = append(all, face)
		sum.Names, sum.Methods, sum.Fields = sum.Names+face.Names, sum.Methods+face.Methods, sum.Fields+face.Fields
	}
	return append(all, sum)
}

// SmallFace checks that the sum of the public packages is not greater than the limit.
func SmallFace(t *Tree, rooms []Room, limit Face) []Violation {
	all := faces(t, rooms)
	sum := all[len(all)-1]
	if sum.Names <= limit.Names && sum.Methods <= limit.Methods && sum.Fields <= limit.Fields {
		return nil
	}
	return []Violation{violation("the public packages", "%d exported names, %d methods and %d fields, at most %d, %d and %d are accepted: "+
		"unexport one that only this repository uses, or move it below internal; raise faceLimit only for a name that users need; go run ./hack/face counts them by package",
		sum.Names, sum.Methods, sum.Fields, limit.Names, limit.Methods, limit.Fields)}
}

func (f *Face) add(file *ast.File) {
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			switch {
			case !d.Name.IsExported():
			case d.Recv == nil:
				f.Names++
			case ast.IsExported(receiver(d.Recv.List[0].Type)):
				f.Methods++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				f.addSpec(spec)
			}
		}
	}
}

func (f *Face) addSpec(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		f.Names += exported(s.Names)
	case *ast.TypeSpec:
		if s.Name.IsExported() {
			f.Names++
			f.addType(s.Type)
		}
	}
}

func (f *Face) addType(of ast.Expr) {
	switch t := of.(type) {
	case *ast.InterfaceType:
		for _, method := range t.Methods.List {
			f.Methods += exported(method.Names)
		}
	case *ast.StructType:
		for _, field := range t.Fields.List {
			f.Fields += exported(field.Names)
			if len(field.Names) == 0 {
				f.Fields++
			}
			f.addType(field.Type)
		}
	}
}

func exported(names []*ast.Ident) int {
	return len(slices.DeleteFunc(slices.Clone(names), func(name *ast.Ident) bool { return !name.IsExported() }))
}

// receiver is the name of the type of a receiver.
func receiver(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
