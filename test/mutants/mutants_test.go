// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../.."

// A row that does not fit the code any more tests nothing.
func TestEveryMutantFitsTheCode(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutants {
		content, err := m.mutated(root)
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.file, content, parser.SkipObjectResolution); err != nil {
			t.Errorf("mutant %q is no Go: %v", m.name, err)
		}
		if names[m.name] || m.old == m.new || len(m.packages) == 0 {
			t.Errorf("mutant %q: the name is given twice, nothing is changed, or no package is named", m.name)
		}
		names[m.name] = true
		for _, path := range m.packages {
			if files, err := filepath.Glob(filepath.Join(root, path, "*_test.go")); err != nil || len(files) == 0 {
				t.Errorf("mutant %q: %s has no tests (%v)", m.name, path, err)
			}
		}
	}
	if len(mutants) < 40 {
		t.Errorf("there are %d mutants, want 40 at least", len(mutants))
	}
}

// A module of one package shows what becomes of a mutant.
func TestAMutantSurvivesOnlyIfAllTestsPass(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/sum\n\ngo 1.26\n",
		"sum.go":    "package sum\n\nfunc Sum(a, b int) int { return a + b }\n\nfunc Untested() int { return 1 }\n",
		"s_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif Sum(1, 2) != 3 {\n\t\tt.Fatal(Sum(1, 2))\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, old, new string
		survives       bool
		err            string
	}{
		{name: "noticed", old: "a + b", new: "a - b"},
		{name: "not noticed", old: "return 1", new: "return 2", survives: true},
		{name: "not Go", old: "return 1", new: "return nothing", err: "cannot be built"},
		{name: "not there", old: "return 7", new: "return 8", err: "0 times, not once"},
		{name: "there twice", old: "return", new: "panic", err: "2 times, not once"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := mutant{name: test.name, file: "sum.go", old: test.old, new: test.new, packages: []string{"./"}}
			survives, err := m.survives(t.Context(), folder, t.TempDir())
			if survives != test.survives || (err != nil) != (test.err != "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("survives: %v, error: %v", survives, err)
			}
		})
	}
}
