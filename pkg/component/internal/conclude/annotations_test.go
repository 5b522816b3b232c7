// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestEveryAnnotationOfAComponentIsKnown(t *testing.T) {
	for _, folder := range []string{"api/v1alpha1", "internal/vocabulary"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../../../../"+folder+"/annotations.go", nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 {
				return true
			}
			name, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			for line := range strings.Lines(spec.Doc.Text()) {
				if of, found := strings.CutPrefix(line, "On: "); found && strings.Contains(of, "the component") != slices.Contains(annotations, name) {
					t.Errorf("annotation %s, on %s", name, of)
				}
			}
			return true
		})
	}
}
