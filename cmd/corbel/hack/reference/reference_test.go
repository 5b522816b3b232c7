// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/test/check"
)

// root is the root of the repository.
const root = "../../../.."

// TestTheReferenceIsWhatTheSourcesSay fails if a comment lacks something that a page needs, or if the
// pages are not those that the comments lead to.
func TestTheReferenceIsWhatTheSourcesSay(t *testing.T) {
	pages, err := build(root)
	if err != nil {
		t.Fatalf("complete these comments:\n%v", err)
	}
	for name, want := range pages {
		got, err := os.ReadFile(filepath.Join(root, folder, name))
		if err != nil {
			t.Errorf("%v; make generate writes it", err)
		} else if d := cmp.Diff(want, string(got)); d != "" {
			t.Errorf("%s/%s is out of date, make generate writes it (-want +got):\n%s", folder, name, d)
		}
	}
	files := check.Must(filepath.Glob(filepath.Join(root, folder, "*.md")))(t)
	index := check.Must(os.ReadFile(filepath.Join(root, folder, "README.md")))(t)
	for _, file := range files {
		name := filepath.Base(file)
		if _, written := pages[name]; !written && name != "README.md" {
			t.Errorf("%s/%s is not written by this program", folder, name)
		}
		if name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("%s/README.md has no link to %s", folder, name)
		}
	}
}

// TestEveryStructOfOptionsHasATable finds options that no page has.
func TestEveryStructOfOptionsHasATable(t *testing.T) {
	s := check.Must(load(root, "pkg"))(t)
	if names := (&reference{source: s}).unlisted(); len(names) > 0 {
		t.Errorf("add these structs to optionTypes or to otherOptions: %s", strings.Join(names, ", "))
	}
}

// reasonAt is the position of the reason among the arguments of what sends an event.
var reasonAt = map[string]int{"Eventf": 3, "Warn": 1, "warn": 1, "sendOnce": 1}

// literalReasons returns where the reason of an event, of a note or of a condition is not a constant.
func literalReasons(s *source) []string {
	var found []string
	for _, p := range s.sorted() {
		for _, file := range p.files {
			ast.Inspect(file, func(node ast.Node) bool {
				var reason ast.Expr
				switch n := node.(type) {
				case *ast.CallExpr:
					selector, _ := n.Fun.(*ast.SelectorExpr)
					if selector == nil {
						break
					}
					if at, sends := reasonAt[selector.Sel.Name]; sends && at < len(n.Args) {
						reason = n.Args[at]
					}
				case *ast.KeyValueExpr:
					if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Reason" {
						reason = n.Value
					}
				}
				if literal, ok := reason.(*ast.BasicLit); ok && literal.Kind == token.STRING && literal.Value != `""` {
					position := s.files.Position(literal.Pos())
					found = append(found, p.path+"/"+filepath.Base(position.Filename)+": "+literal.Value)
				}
				return true
			})
		}
	}
	return found
}

// TestEveryReasonIsAConstant finds reasons that no page can have, because they stand in the middle of code.
func TestEveryReasonIsAConstant(t *testing.T) {
	s := check.Must(load(root, "api", "pkg", "internal", "cmd/corbel/internal", "cmd/corbel/ui"))(t)
	if found := literalReasons(s); len(found) > 0 {
		t.Errorf("make constants of these reasons, and say in their comments what to do:\n%s", strings.Join(found, "\n"))
	}
}
