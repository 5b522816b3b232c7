// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackageDocs(t *testing.T) {
	runRules(t, PackageDocs, []rule{
		{name: "a package is described in its doc.go",
			files: map[string]string{"pkg/words/doc.go": "// Package words is about words.\npackage words\n"}},
		{name: "not elsewhere",
			files: map[string]string{"pkg/words/a.go": "// Package words is about words.\npackage words\n"},
			want:  []string{"pkg/words: the package has no doc.go"}},
		{name: "the license header is no description",
			files: map[string]string{"pkg/words/doc.go": header + "package words\n"},
			want:  []string{`pkg/words/doc.go: its package comment has to start with "Package words "`}},
		{name: "tests alone are a package, too",
			files: map[string]string{"test/bed/a_test.go": "package bed_test\n"},
			want:  []string{"test/bed: the package has no doc.go"}},
		{name: "a command is described where it starts",
			files: map[string]string{"cmd/x/main.go": "// X does things.\npackage main\n", "cmd/y/main.go": "package main\n"},
			want:  []string{"cmd/y: the command has no comment"}},
	})
}

func TestExamples(t *testing.T) {
	runRules(t, func(tree *Tree) []Violation { return Examples(tree, house) }, []rule{
		{name: "an example that runs is enough",
			files: map[string]string{"pkg/words/a_test.go": "package words_test\nfunc Example() {\n\t// Output: x\n}\n"}},
		{name: "one without output is only compiled",
			files: map[string]string{"pkg/words/a_test.go": "package words_test\nfunc Example() {}\n"},
			want:  []string{"pkg/words: the public package has no Example"}},
		{name: "an example outside a test file does not count",
			files: map[string]string{"pkg/words/a.go": "package words\nfunc Example() {\n\t// Output: x\n}\n"},
			want:  []string{"pkg/words: the public package has no Example"}},
		{name: "other packages need none",
			files: map[string]string{"internal/tools/a.go": "package tools\n", "examples/shop/a.go": "package main\n", "test/bed/a.go": "package bed\n"}},
	})
}

func TestHeaders(t *testing.T) {
	shell := strings.ReplaceAll(header, "//", "#")
	runRules(t, Headers, []rule{
		{name: "sources start with the header",
			files: map[string]string{"a/a.go": header + "package a\n", "hack/a.sh": "#!/usr/bin/env bash\n" + shell, "Makefile": shell}},
		{name: "a build constraint may precede it",
			files: map[string]string{"a/a.go": "//go:build linux\n\n" + header + "package a\n"}},
		{name: "each source needs it",
			files: map[string]string{"a/a.go": "package a\n" + header, ".ci/run": "#!/usr/bin/env bash\n", "x.mk": shell, "README.md": "Hello\n"},
			want:  []string{".ci/run: has to start with", "a/a.go: has to start with"}},
		{name: "with the right license",
			files: map[string]string{"a/a.go": strings.ReplaceAll(header, "Apache-2.0", "MIT") + "package a\n"},
			want:  []string{"a/a.go: has to start with"}},
	})
}

func TestWords(t *testing.T) {
	later, path := "TO"+"DO", "/ro"+"ot/x"
	runRules(t, func(tree *Tree) []Violation { return Words(tree, words) }, []rule{
		{name: "unfinished work is reported",
			files: map[string]string{"a/a.go": "package a\n// " + later + ": more\n", "b.md": "to" + "do lists, a mast" + "odon\n"},
			want:  []string{`a/a.go:2: says "` + later + `"`}},
		{name: "no path of a machine",
			files: map[string]string{"Makefile": "x:\n\tcat " + path + "\n", "b.md": "see pkg" + path + "\n"},
			want:  []string{`Makefile:2: says "/ro` + `ot/"`}},
		{name: "no module proxy",
			files: map[string]string{"go.mod.md": "GOPROXY=https://pro" + "xy.golang.org\n"},
			want:  []string{`go.mod.md:1: says "pro` + `xy.golang.org"`}},
		{name: "data of tests may hold anything",
			files: map[string]string{"a/testdata/x.yaml": "# " + later + "\n", "go.sum": later + "\n"}},
	})
}

func TestDocuments(t *testing.T) {
	runRules(t, func(tree *Tree) []Violation { return Documents(tree, house) }, []rule{
		{name: "paths and links of a document exist",
			files: map[string]string{
				"docs/a.md": "See `pkg/words`, `pkg/words/a.go`, `examples/...` and [b](b.md#x), [c](../c.md), [w](https://x.io/y).\n",
				"docs/b.md": "", "c.md": "",
				"pkg/words/a.go":  "package words\n",
				"examples/x/a.go": "package x\n",
			}},
		{name: "a path or link without a target is reported",
			files: map[string]string{
				"a.md":           "x\n`pkg/words/b.go` and\n[b](docs/b.md)\n",
				"pkg/words/a.go": "package words\n",
			},
			want: []string{"a.md:2: names `pkg/words/b.go`, which does not exist", "a.md:3: links to docs/b.md, which does not exist"}},
		{name: "functions and types that a document names are where it says",
			files: map[string]string{
				"a.md":           "`A.Run` in `pkg/words/a.go`, `A` and `b` in `pkg/words`, `a.go` in `pkg/words`\n`C` in `pkg/words`\n",
				"pkg/words/a.go": "package words\n\ntype A struct{}\n\nfunc (a *A) Run() {}\n\nfunc b[T any]() {}\n",
			},
			want: []string{"a.md:2: names C in pkg/words, which does not exist"}},
		{name: "a room that is not built yet may be named",
			files: map[string]string{"a.md": "`pkg/hands`, `pkg/hands/a.go` and `pkg/feet`\n"},
			want:  []string{"a.md:1: names `pkg/feet`, which does not exist"}},
		{name: "code of a document is compiled elsewhere",
			files: map[string]string{
				"a.md":                "<!-- code of pkg/words/x_test.go -->\n```go\nfunc main() {\n\tword()\n}\n```\n",
				"pkg/words/x_test.go": "package words\n\nfunc Example()  {\n\tx()\n\t\tword()\n\t// Output:\n}\n",
			}},
		{name: "code that is not is reported",
			files: map[string]string{
				"a.md":                "<!-- code of pkg/words/x_test.go -->\n```go\nfunc main() {\n\twords()\n}\n```\n",
				"b.md":                "<!-- code of pkg/hands/x_test.go -->\n```go\nfunc main() {}\n```\n",
				"pkg/words/x_test.go": "package words\n\nfunc Example() {\n\tword()\n}\n",
			},
			want: []string{"a.md: shows code of pkg/words/x_test.go that is not there, or not in this order: words()"}},
		{name: "code of a file that does not exist is reported",
			files: map[string]string{"a.md": "<!-- code of pkg/words/y_test.go -->\n```go\nx()\n```\n", "pkg/words/a.go": "package words\n"},
			want:  []string{"a.md: shows code of pkg/words/y_test.go, which does not exist"}},
		{name: "Go in a guide has a label",
			files: map[string]string{
				"docs/a.md":         "text\n```go\nx()\n```\n<!-- output -->\n```go\ny()\n```\n  ```yaml\nz: 1\n  ```\n",
				"docs/deep/b.md":    "\n```go\nx()\n```\n",
				"README.md":         "\n```go\nx()\n```\n",
				"docs/reference.go": "package docs\n",
			},
			want: []string{"README.md:2: shows Go that nothing compiles", "docs/a.md:2: shows Go that nothing compiles"}},
		{name: "the map of documents lists the public packages",
			files: map[string]string{mapFile: "`pkg/hands`\n", "pkg/hands/a.go": "package hands\n", "pkg/words/a.go": "package words\n", "internal/tools/a.go": "package tools\n"},
			want:  []string{"docs/README.md: its package map lacks `pkg/words`"}},
		{name: "the floors are those of the rooms",
			files: map[string]string{floorsFile: "x\n" + floorsStart + renderFloors(house) + floorsEnd + "\ny\n"}},
		{name: "other floors are reported",
			files: map[string]string{floorsFile: floorsStart + renderFloors(house[1:]) + floorsEnd},
			want:  []string{"ARCHITECTURE.md: its floors are not those of"}},
		{name: "missing floors, too",
			files: map[string]string{floorsFile: "nothing here\n"},
			want:  []string{"ARCHITECTURE.md: lacks the lines"}},
	})
}

func TestWithFloorsKeepsTheRest(t *testing.T) {
	got, err := withFloors("before\n"+floorsStart+"old\n"+floorsEnd+"\nafter\n", house)
	if err != nil {
		t.Fatal(err)
	}
	want := "before\n" + floorsStart + renderFloors(house) + floorsEnd + "\nafter\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("document (-want +got):\n%s", diff)
	}
}
