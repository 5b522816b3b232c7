// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"path"
	"slices"
)

// Purity checks what closed and data packages import from elsewhere, and that
// they do not read the clock. For a closed package this holds for everything of
// ours that it reaches, too, because a helper one import away is as impure.
func Purity(t *Tree, rooms []Room) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		room, _ := roomOf(rooms, p.Path)
		switch room.Kind {
		case Data:
			allowed := slices.Concat(closedExternal, dataExternal, room.External)
			found = append(found, impure(t, p, allowed, "a data package", room.Clock)...)
		case Closed:
			for _, reached := range t.reach(p) {
				why := "a closed package"
				if reached != p {
					why = "reached by " + p.Path + ", a closed package"
				}
				found = append(found, impure(t, reached, closedExternal, why, false)...)
			}
		}
	}
	return found
}

// Light checks that packages that users take without the engine do not reach the libraries of
// the engine, because a program of their users would compile and download them.
func Light(t *Tree, packages, libraries []string) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		if !slices.Contains(packages, p.Path) {
			continue
		}
		for _, reached := range t.reach(p) {
			for _, file := range reached.Files {
				for _, i := range file.Imports {
					if !file.Test && coversAny(libraries, i.Path) {
						found = append(found, violation(file.Path, "imports %s, but %s reaches %s and is used without the engine",
							i.Path, p.Path, reached.Path))
					}
				}
			}
		}
	}
	return found
}

// impure lists what the shipped files of a package import or call against the rule.
func impure(t *Tree, p *Package, allowed []string, why string, clock bool) []Violation {
	var found []Violation
	for _, file := range p.Files {
		if file.Test {
			continue
		}
		for _, i := range file.Imports {
			if _, local := t.folderOf(i.Path); !local && !coversAny(allowed, i.Path) {
				found = append(found, violation(file.Path,
					"imports %s, but %s is %s: pass in the result, or, if the import is pure, list it in test/architecture/external.go",
					i.Path, p.Path, why))
			}
		}
		if !clock {
			found = append(found, readsClock(file, p.Path+" is "+why)...)
		}
	}
	return found
}

// reach returns the package and all packages of ours that its shipped files
// import, directly or not.
func (t *Tree) reach(start *Package) []*Package {
	reached := []*Package{start}
	for next := 0; next < len(reached); next++ {
		for _, file := range reached[next].Files {
			if file.Test {
				continue
			}
			for _, folder := range t.localImports(file) {
				at := slices.IndexFunc(t.Packages, func(p *Package) bool { return p.Path == folder })
				if at >= 0 && !slices.Contains(reached, t.Packages[at]) {
					reached = append(reached, t.Packages[at])
				}
			}
		}
	}
	return reached
}

// readsClock finds the names of the clock in a file, also where they are not
// called but handed on.
func readsClock(f *File, why string) []Violation {
	forbidden := map[string][]string{} // by local name
	for _, i := range f.Imports {
		if names, ok := clock[i.Path]; ok {
			forbidden[localName(i)] = names
		}
	}
	var found []Violation
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := selector.X.(*ast.Ident); ok && slices.Contains(forbidden[x.Name], selector.Sel.Name) {
			found = append(found, violation(at(f, f.line(selector.Pos())),
				"uses %s.%s, but %s: take the time as a parameter", x.Name, selector.Sel.Name, why))
		}
		return true
	})
	return found
}

// localName is the name that an import has in its file.
func localName(i Import) string {
	if i.Name != "" {
		return i.Name
	}
	return path.Base(i.Path)
}
