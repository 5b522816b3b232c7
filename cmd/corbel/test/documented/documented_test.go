// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const document = "../../../../docs/contributing/seeds.md"

// name is a Go name: package, and one or two names.
var name = regexp.MustCompile("`([a-z]+(?:\\.[A-Z][A-Za-z0-9]*){1,2})`")

// TestEveryDocumentedNameIsUsed compares the document with the uses in this package: a row with a
// name that does not compile is found, and so is a use without a row.
func TestEveryDocumentedNameIsUsed(t *testing.T) {
	content, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(content)) {
		// The second column of a table is ours, the first one theirs.
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for _, match := range name.FindAllStringSubmatch(cells[2], -1) {
				documented[match[1]] = true
			}
		}
	}
	used := uses(t)
	if len(documented) < 150 || len(used) < 150 {
		t.Fatalf("%d names are documented and %d used: something is not seen", len(documented), len(used))
	}
	for _, name := range slices.Sorted(maps.Keys(documented)) {
		if !used[name] {
			t.Errorf("%s names %s, which is not used here", document, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !documented[name] {
			t.Errorf("%s is used here and has no row in %s", name, document)
		}
	}
}

// uses returns the names of our packages that the tests here use: pkg.Name, and
// pkg.Name.Member for methods and for fields of literals.
func uses(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	for _, file := range files {
		if file == "cluster_test.go" || file == "manifests_test.go" {
			continue // they use Corbel, as an author of an operator does
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ours := map[string]bool{}
		for _, spec := range syntax.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if strings.HasPrefix(imported, "github.com/corbel-run/corbel/pkg/") {
				ours[path.Base(imported)] = true
			}
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.SelectorExpr:
				if name := nameOf(n, ours); name != "" {
					used[name] = true
				}
			case *ast.CompositeLit:
				for _, element := range n.Elts {
					pair, ok := element.(*ast.KeyValueExpr)
					if !ok {
						continue
					}
					if key, ok := pair.Key.(*ast.Ident); ok && nameOf(n.Type, ours) != "" {
						used[nameOf(n.Type, ours)+"."+key.Name] = true
					}
				}
			}
			return true
		})
	}
	return used
}

// nameOf returns the name of an expression of one of the packages, or nothing.
func nameOf(expression ast.Expr, ours map[string]bool) string {
	switch e := expression.(type) {
	case *ast.ParenExpr:
		return nameOf(e.X, ours)
	case *ast.StarExpr:
		return nameOf(e.X, ours)
	case *ast.IndexExpr:
		return nameOf(e.X, ours)
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			if !ours[x.Name] {
				return ""
			}
			return x.Name + "." + e.Sel.Name
		}
		if of := nameOf(e.X, ours); of != "" {
			return of + "." + e.Sel.Name
		}
	}
	return ""
}
