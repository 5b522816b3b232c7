// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// passMakers are the functions whose values make passes over objects with conditions, by package.
var passMakers = map[string][]string{
	"pkg/component": {"NewReconciler"},
	"pkg/lifecycle": {"NewLoop"},
	"pkg/summarize": {"NewHelper"},
}

// judge is the package whose Check says whether conditions make sense.
const judge = "pkg/conditions/conditionstest"

// Judged checks that tests which make passes judge the conditions that these leave: in the
// function itself, or in a function that the tests of the package share. Examples show
// something else.
func Judged(t *Tree) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		var makers []string
		shared := false
		for _, file := range p.Files {
			if !file.Test {
				continue
			}
			for _, declaration := range file.Syntax.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if !ok || strings.HasPrefix(function.Name.Name, "Example") {
					continue
				}
				judges := file.calls(function, t.Module+"/"+judge, "Check", "Errors")
				shared = shared || judges && !strings.HasPrefix(function.Name.Name, "Test")
				if !judges && t.makesPasses(p, file, function) {
					makers = append(makers, at(file, file.line(function.Pos())))
				}
			}
		}
		if shared {
			continue
		}
		for _, where := range makers {
			found = append(found, violation(where, "makes passes and does not judge the conditions; end with Check of %s, best in a Cleanup of what the tests share", judge))
		}
	}
	return found
}

func (t *Tree) makesPasses(p *Package, file *File, function *ast.FuncDecl) bool {
	for home, names := range passMakers {
		if file.calls(function, t.Module+"/"+home, names...) || p.Path == home && callsUnqualified(function, names) {
			return true
		}
	}
	return false
}

// calls tells whether the function uses one of the names of an imported package.
func (f *File) calls(function *ast.FuncDecl, imported string, names ...string) bool {
	at := slices.IndexFunc(f.Imports, func(i Import) bool { return i.Path == imported })
	if at < 0 {
		return false
	}
	local := f.Imports[at].Name
	if local == "" {
		local = path.Base(imported)
	}
	found := false
	ast.Inspect(function, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok && slices.Contains(names, selector.Sel.Name) {
			qualifier, ok := selector.X.(*ast.Ident)
			found = found || ok && qualifier.Name == local
		}
		return !found
	})
	return found
}

// callsUnqualified is for tests inside the package itself.
func callsUnqualified(function *ast.FuncDecl, names []string) bool {
	found := false
	ast.Inspect(function, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			fun := call.Fun
			if generic, ok := fun.(*ast.IndexExpr); ok {
				fun = generic.X
			}
			name, ok := fun.(*ast.Ident)
			found = found || ok && slices.Contains(names, name.Name)
		}
		return !found
	})
	return found
}
