// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"cmp"
	"go/ast"
	"go/token"
	"slices"
)

// The limits of files and functions, in lines.
const (
	maxFileLines     = 500
	maxFunctionLines = 80
)

// Size is the length of a file or of a function.
type Size struct {
	Where string
	Name  string // of the function; empty for a file
	Lines int
}

// Sizes checks the length of files and functions. Generated files do not count.
func Sizes(t *Tree) []Violation {
	files, functions := measure(t)
	var found []Violation
	for _, s := range files {
		if s.Lines > maxFileLines {
			found = append(found, violation(s.Where, "%d lines, at most %d: it holds more than one idea; give each its own file", s.Lines, maxFileLines))
		}
	}
	for _, s := range functions {
		if s.Lines > maxFunctionLines {
			found = append(found, violation(s.Where, "func %s has %d lines, at most %d: name its parts and move them down", s.Name, s.Lines, maxFunctionLines))
		}
	}
	return found
}

// measure returns all files and functions with their lengths, longest first.
func measure(t *Tree) (files, functions []Size) {
	for _, p := range t.Packages {
		for _, f := range p.Files {
			if f.Generated {
				continue
			}
			files = append(files, Size{Where: f.Path, Lines: f.Lines})
			functions = append(functions, functionSizes(f)...)
		}
	}
	longest := func(a, b Size) int { return cmp.Or(-cmp.Compare(a.Lines, b.Lines), cmp.Compare(a.Where, b.Where)) }
	slices.SortFunc(files, longest)
	slices.SortFunc(functions, longest)
	return files, functions
}

func functionSizes(f *File) []Size {
	var sizes []Size
	for _, declaration := range f.Syntax.Decls {
		name := ""
		if function, ok := declaration.(*ast.FuncDecl); ok {
			name = function.Name.Name
			sizes = append(sizes, Size{
				Where: at(f, f.line(function.Pos())), Name: name,
				Lines: f.span(function.Pos(), function.End()) - f.tableLines(function),
			})
		}
		sizes = append(sizes, f.functionsInTables(declaration, name)...)
	}
	return sizes
}

// tableLines counts the lines that a node's composite literals and raw strings
// add. They are data, and data may be long.
func (f *File) tableLines(root ast.Node) int {
	lines := 0
	ast.Inspect(root, func(n ast.Node) bool {
		switch literal := n.(type) {
		case *ast.CompositeLit:
			lines += f.span(literal.Pos(), literal.End()) - 1
			return false
		case *ast.BasicLit:
			lines += f.span(literal.Pos(), literal.End()) - 1
		}
		return true
	})
	return lines
}

// functionsInTables measures functions inside composite literals on their own,
// since their lines do not count for the function around.
func (f *File) functionsInTables(root ast.Node, around string) []Size {
	var sizes []Size
	ast.Inspect(root, func(n ast.Node) bool {
		table, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		ast.Inspect(table, func(n ast.Node) bool {
			if function, ok := n.(*ast.FuncLit); ok {
				sizes = append(sizes, Size{
					Where: at(f, f.line(function.Pos())), Name: cmp.Or(around, "(variable)") + " (in a table)",
					Lines: f.span(function.Pos(), function.End()) - f.tableLines(function),
				})
			}
			return true
		})
		return false
	})
	return sizes
}

// span is the number of lines from one position to another, both included.
func (f *File) span(from, to token.Pos) int { return f.line(to) - f.line(from) + 1 }
