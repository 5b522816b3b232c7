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
	"time"

	"github.com/corbel-run/corbel/internal/report"
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

func TestTheConditionAboutManyDriftedObjectsStaysShort(t *testing.T) {
	var many []report.Deviation
	for range 100 {
		key := report.Key{Kind: "ConfigMap", Namespace: "shop", Name: strings.Repeat("n", 250)}
		many = append(many, report.Deviation{Key: key, Drift: report.Drift{
			Manager: strings.Repeat("m", 120), At: time.Now(), Fields: []string{strings.Repeat("f", 120), strings.Repeat("g", 120)},
		}})
	}
	if message := driftMessage(many); len(message) > 1024 || !strings.HasSuffix(message, "and 97 more") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}
