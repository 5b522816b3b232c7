// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// modulePath is the prefix of the import paths of this module.
const modulePath = "github.com/corbel-run/corbel/"

// source is the syntax of the packages of this module, by path below the root.
type source struct {
	files    *token.FileSet
	packages map[string]*pkg
}

// pkg is one package, without its tests.
type pkg struct {
	path  string
	files []*ast.File
	// names are the constants in the order of their declaration, and constants the same by name.
	names     []string
	constants map[string]*constantOf
}

// constantOf is a constant at package level.
type constantOf struct {
	pkg     *pkg
	file    *ast.File
	name    string
	typ     string
	comment comment
	expr    ast.Expr
	value   constant.Value // nil: not evaluated yet, or unknown
	// duration and size: a constant of package time, or a shift, occurs in what the value is made of.
	duration, size bool
}

// load reads all packages below the given folders of root.
func load(root string, folders ...string) (*source, error) {
	s := &source{files: token.NewFileSet(), packages: map[string]*pkg{}}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(file string, entry fs.DirEntry, err error) error {
			switch name := entry.Name(); {
			case err != nil:
				return err
			case entry.IsDir() && name == "testdata":
				return filepath.SkipDir
			case entry.IsDir() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "zz_generated"):
				return nil
			}
			return s.add(root, file)
		})
		if err != nil {
			return nil, fmt.Errorf("read the sources: %w", err)
		}
	}
	for _, p := range s.packages {
		for _, c := range p.constants {
			s.evaluate(c, 0)
		}
	}
	return s, nil
}

// add parses one file.
func (s *source) add(root, file string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	syntax, err := parser.ParseFile(s.files, file, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	folder, err := filepath.Rel(root, filepath.Dir(file))
	if err != nil {
		return err
	}
	folder = filepath.ToSlash(folder)
	p := s.packages[folder]
	if p == nil {
		p = &pkg{path: folder, constants: map[string]*constantOf{}}
		s.packages[folder] = p
	}
	p.files = append(p.files, syntax)
	for _, declaration := range syntax.Decls {
		if group, ok := declaration.(*ast.GenDecl); ok && group.Tok == token.CONST {
			p.addConstants(syntax, group)
		}
	}
	return nil
}

// addConstants adds the constants of a declaration. A comment above a group is about the group.
func (p *pkg) addConstants(file *ast.File, group *ast.GenDecl) {
	for _, spec := range group.Specs {
		values := spec.(*ast.ValueSpec)
		doc := values.Doc
		if !group.Lparen.IsValid() {
			doc = group.Doc
		}
		for i, name := range values.Names {
			if i >= len(values.Values) {
				continue // iota counts on; no page has one
			}
			c := &constantOf{pkg: p, file: file, name: name.Name, comment: parseComment(doc), expr: values.Values[i]}
			if values.Type != nil {
				c.typ = text(values.Type)
			}
			p.names = append(p.names, name.Name)
			p.constants[name.Name] = c
		}
	}
}

// sorted returns the packages by path.
func (s *source) sorted() []*pkg {
	packages := make([]*pkg, 0, len(s.packages))
	for _, p := range s.packages {
		packages = append(packages, p)
	}
	slices.SortFunc(packages, func(a, b *pkg) int { return cmp.Compare(a.path, b.path) })
	return packages
}

// all returns the constants of all packages for which keep is true.
func (s *source) all(keep func(*constantOf) bool) []*constantOf {
	var found []*constantOf
	for _, p := range s.sorted() {
		for _, name := range p.names {
			if c := p.constants[name]; c.value != nil && keep(c) {
				found = append(found, c)
			}
		}
	}
	return found
}

// text returns the value of a constant that is a string, and otherwise nothing.
func (c *constantOf) text() string {
	if c.value == nil || c.value.Kind() != constant.String {
		return ""
	}
	return constant.StringVal(c.value)
}

// units are the constants of package time that occur in the sources.
var units = map[string]int64{"Nanosecond": 1, "Microsecond": 1e3, "Millisecond": 1e6, "Second": 1e9, "Minute": 60e9, "Hour": 3600e9}

// maxDepth bounds the constants that a constant refers to.
const maxDepth = 20

// evaluate sets the value of a constant, unless its expression is of a form that no page needs.
func (s *source) evaluate(c *constantOf, depth int) constant.Value {
	if c.value == nil && depth < maxDepth {
		c.value = s.valueOf(c, c.expr, depth)
	}
	return c.value
}

func (s *source) valueOf(c *constantOf, expression ast.Expr, depth int) constant.Value {
	switch e := expression.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return s.valueOf(c, e.X, depth)
	case *ast.Ident:
		if other := c.pkg.constants[e.Name]; other != nil {
			return s.referred(c, other, depth)
		}
	case *ast.CallExpr: // a conversion
		if len(e.Args) == 1 {
			return s.valueOf(c, e.Args[0], depth)
		}
	case *ast.SelectorExpr:
		return s.selected(c, e, depth)
	case *ast.BinaryExpr:
		x, y := s.valueOf(c, e.X, depth), s.valueOf(c, e.Y, depth)
		switch {
		case x == nil || y == nil:
		case e.Op == token.SHL:
			c.size = true
			bits, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(bits))
		case e.Op == token.QUO && x.Kind() == constant.Int && y.Kind() == constant.Int:
			return constant.BinaryOp(x, token.QUO_ASSIGN, y)
		default:
			return constant.BinaryOp(x, e.Op, y)
		}
	}
	return nil
}

// selected returns the value of a constant of another package of this module, or of package time.
func (s *source) selected(c *constantOf, e *ast.SelectorExpr, depth int) constant.Value {
	x, ok := e.X.(*ast.Ident)
	if !ok {
		return nil
	}
	if unit, known := units[e.Sel.Name]; known && x.Name == "time" {
		c.duration = true
		return constant.MakeInt64(unit)
	}
	for _, spec := range c.file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		folder, ours := strings.CutPrefix(imported, modulePath)
		if p := s.packages[folder]; ours && p != nil && path.Base(folder) == x.Name && p.constants[e.Sel.Name] != nil {
			return s.referred(c, p.constants[e.Sel.Name], depth)
		}
	}
	return nil
}

// referred returns the value of a constant that c refers to.
func (s *source) referred(c, other *constantOf, depth int) constant.Value {
	value := s.evaluate(other, depth+1)
	c.duration, c.size = c.duration || other.duration, c.size || other.size
	return value
}
