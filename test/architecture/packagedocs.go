// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/doc"
	"path"
	"slices"
	"strings"
)

// PackageDocs checks that every package says what it is: a library in its
// doc.go, a command wherever its main function is.
func PackageDocs(t *Tree) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		home := slices.IndexFunc(p.Files, func(f *File) bool { return path.Base(f.Path) == "doc.go" })
		switch {
		case p.Name == "main":
			if !slices.ContainsFunc(p.Files, func(f *File) bool { return f.Syntax.Doc.Text() != "" }) {
				found = append(found, violation(p.Path, "the command has no comment above its package clause that says what it does"))
			}
		case home < 0:
			found = append(found, violation(p.Path, "the package has no doc.go that tells what it is for"))
		case !strings.HasPrefix(p.Files[home].Syntax.Doc.Text(), "Package "+p.Name+" "):
			found = append(found, violation(p.Files[home].Path, "its package comment has to begin with %q", "Package "+p.Name+" "))
		}
	}
	return found
}

// Examples checks that every public package has an Example that go test runs,
// which it does if the Example states its output.
func Examples(t *Tree, house []Room) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		room, ok := roomOf(house, p.Path)
		if !ok || !isPublic(room) {
			continue
		}
		var tests []*ast.File
		for _, file := range p.Files {
			if file.Test {
				tests = append(tests, file.Syntax)
			}
		}
		runs := func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }
		if !slices.ContainsFunc(doc.Examples(tests...), runs) {
			found = append(found, violation(p.Path, "the public package has no Example with an output comment that shows its use"))
		}
	}
	return found
}
