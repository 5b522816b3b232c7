// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"path"
	"slices"
	"strings"
)

// reconcilerConstructors are the functions that return reconcilers of objects with conditions, by
// package.
var reconcilerConstructors = map[string][]string{
	"pkg/component": {"NewReconciler"},
	"pkg/lifecycle": {"NewReconciler"},
	"pkg/summarize": {"NewHelper"},
}

// conditionsCheck is the package with the Check that reports conditions that contradict each other.
const conditionsCheck = "pkg/conditions/conditionstest"

// CheckedConditions checks that tests which reconcile objects also check the resulting
// conditions: in the function itself, or in a function that the tests of the package share.
// Examples need not.
func CheckedConditions(t *Tree) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		var unchecked []string
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
				checks := file.calls(function, t.Module+"/"+conditionsCheck, "Check", "Errors")
				shared = shared || checks && !strings.HasPrefix(function.Name.Name, "Test")
				if !checks && t.constructsReconciler(p, file, function) {
					unchecked = append(unchecked, at(file, file.line(function.Pos())))
				}
			}
		}
		if shared {
			continue
		}
		for _, where := range unchecked {
			found = append(found, violation(where, "reconciles and does not check the conditions: end with Check of %s, best in a Cleanup of the shared setup", conditionsCheck))
		}
	}
	return found
}

func (t *Tree) constructsReconciler(p *Package, file *File, function *ast.FuncDecl) bool {
	for pkg, names := range reconcilerConstructors {
		if file.calls(function, t.Module+"/"+pkg, names...) || p.Path == pkg && callsUnqualified(function, names) {
			return true
		}
	}
	return false
}

// calls reports whether the function uses one of the names of an imported package.
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
