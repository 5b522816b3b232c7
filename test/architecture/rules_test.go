// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/test/check"
)

// house are rooms for small trees that break one rule each.
var house = []Room{
	{Path: "pkg/words", Floor: 0, Kind: Data},
	{Path: "pkg/rules", Floor: 1, Kind: Closed},
	{Path: "pkg/assess", Floor: 1, Kind: Open, Beside: []string{"pkg/rules"}},
	{Path: "pkg/hands", Floor: 2, Kind: Open},
	{Path: "internal/tools", Floor: 2, Kind: Open},
	{Path: "examples/...", Floor: 3, Kind: Open},
	{Path: "internal/roof", Floor: 4, Kind: Open},
	{Path: "cmd/tool", Floor: 5, Kind: Open},
	{Path: "test/bed", Floor: supportFloor, Kind: Support},
}

const header = "// SPDX-FileCopyrightText: The Corbel Authors\n// SPDX-License-Identifier: Apache-2.0\n\n"

// tree is a repository of the files; $ stands for the module's path.
func tree(t *testing.T, files map[string]string) *Tree {
	t.Helper()
	root := fstest.MapFS{"go.mod": {Data: []byte("module example.com/house\n")}}
	for name, content := range files {
		root[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(content, "$", "example.com/house"))}
	}
	loaded := check.Must(Load(root))(t)
	return loaded
}

// rule is one case of a table: a tree, and the beginnings of the violations
// that a check must find in it, each "where: what".
type rule struct {
	name  string
	files map[string]string
	want  []string
}

func runRules(t *testing.T, find func(*Tree) []Violation, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			var got []string
			for i, v := range find(tree(t, r.files)) {
				line := v.String()
				if i < len(r.want) && strings.HasPrefix(line, r.want[i]) {
					line = r.want[i]
				}
				got = append(got, line)
			}
			check.EqualNamed(t, "violations", r.want, got)
		})
	}
}

func TestFloors(t *testing.T) {
	runRules(t, func(tree *Tree) []Violation { return Floors(tree, house) }, []rule{
		{name: "an import may point down",
			files: map[string]string{"pkg/hands/a.go": "package hands\nimport _ \"$/pkg/words\"\n", "pkg/words/a.go": "package words\n"}},
		{name: "an import must not point up",
			files: map[string]string{"pkg/words/a.go": "package words\nimport _ \"$/pkg/hands\"\n"},
			want:  []string{"pkg/words/a.go: imports pkg/hands, which is above it"}},
		{name: "an import behind a build constraint is seen",
			files: map[string]string{"pkg/words/a.go": "//go:build plan9\n\npackage words\nimport _ \"$/pkg/hands\"\n"},
			want:  []string{"pkg/words/a.go: imports pkg/hands, which is above it"}},
		{name: "a listed edge may go sideways",
			files: map[string]string{"pkg/assess/a.go": "package assess\nimport _ \"$/pkg/rules\"\n"}},
		{name: "a listed edge goes one way only",
			files: map[string]string{"pkg/rules/a.go": "package rules\nimport _ \"$/pkg/assess\"\n"},
			want:  []string{"pkg/rules/a.go: imports pkg/assess, which is on the same floor"}},
		{name: "tests may look up",
			files: map[string]string{"pkg/words/a_test.go": "package words_test\nimport _ \"$/pkg/hands\"\n"}},
		{name: "what is shipped must not import what is for tests",
			files: map[string]string{"examples/shop/main.go": "package main\nimport _ \"$/test/bed\"\n"},
			want:  []string{"examples/shop/main.go: imports test/bed, which is for tests"}},
		{name: "tests may import what is for tests",
			files: map[string]string{"pkg/words/a_test.go": "package words\nimport _ \"$/test/bed\"\n"}},
		{name: "packages of one open room may import each other",
			files: map[string]string{"examples/shop/main.go": "package main\nimport _ \"$/examples/shop/api\"\n", "examples/shop/api/a.go": "package api\n"}},
		{name: "an unknown package is reported with the place to register it",
			files: map[string]string{"pkg/shed/a.go": "package shed\n"},
			want:  []string{"pkg/shed: the package has no room: add it to rooms in test/architecture/rooms.go"}},
		{name: "a package below a closed path has no room of its own",
			files: map[string]string{"pkg/words/deep/a.go": "package deep\n"},
			want:  []string{"pkg/words/deep: the package has no room"}},
		{name: "a nested module has its own layers",
			files: map[string]string{"hack/x/go.mod": "module example.com/x\n", "hack/x/a.go": "package x\nimport _ \"$/pkg/hands\"\n"}},
		{name: "an import between folders at the root must not point up",
			files: map[string]string{"internal/roof/a.go": "package roof\nimport _ \"$/examples/shop\"\n"},
			want:  []string{"internal/roof/a.go: imports examples/shop, which is in a folder above it"}},
		{name: "a module of the workspace has rooms",
			files: map[string]string{
				"go.work": "use (\n\t.\n\t./cmd/tool\n)\n", "cmd/tool/go.mod": "module $/cmd/tool\n",
				"cmd/tool/a.go": "package main\nimport _ \"$/pkg/hands\"\n", "cmd/tool/shed/a.go": "package shed\n",
			},
			want: []string{"cmd/tool/shed: the package has no room"}},
		{name: "not even tests of the root module import another module",
			files: map[string]string{
				"cmd/tool/go.mod": "module $/cmd/tool\n", "cmd/tool/a.go": "package tool\n",
				"pkg/hands/a_test.go": "package hands\nimport _ \"$/cmd/tool\"\n",
			},
			want: []string{"pkg/hands/a_test.go: imports cmd/tool of the module cmd/tool: the root module imports no other module"}},
	})
}

func TestPurity(t *testing.T) {
	runRules(t, func(tree *Tree) []Violation { return Purity(tree, house) }, []rule{
		{name: "a closed package may import pure things",
			files: map[string]string{"pkg/rules/a.go": "package rules\nimport (\n\"slices\"\n\"k8s.io/apimachinery/pkg/util/sets\"\n)\n"}},
		{name: "a closed package must not import a context, a client or the system",
			files: map[string]string{"pkg/rules/a.go": "package rules\nimport (\n\"context\"\n\"net/url\"\n\"os\"\n\"k8s.io/client-go/rest\"\n)\n"},
			want: []string{
				"pkg/rules/a.go: imports context, but pkg/rules is a closed package",
				"pkg/rules/a.go: imports net/url,",
				"pkg/rules/a.go: imports os,",
				"pkg/rules/a.go: imports k8s.io/client-go/rest,",
			}},
		{name: "nor reach one through a package of ours",
			files: map[string]string{
				"pkg/rules/a.go": "package rules\nimport _ \"$/pkg/words\"\n",
				"pkg/words/a.go": "package words\nimport _ \"sigs.k8s.io/controller-runtime/pkg/client\"\n",
			},
			want: []string{"pkg/words/a.go: imports sigs.k8s.io/controller-runtime/pkg/client, but pkg/words is reached by pkg/rules, a closed package"}},
		{name: "nor through one more",
			files: map[string]string{
				"pkg/rules/a.go":      "package rules\nimport _ \"$/internal/tools\"\n",
				"internal/tools/a.go": "package tools\nimport _ \"$/pkg/hands\"\n",
				"pkg/hands/a.go":      "package hands\nimport _ \"$/pkg/rules\"\nimport _ \"net\"\n",
			},
			want: []string{"pkg/hands/a.go: imports net, but pkg/hands is reached by pkg/rules"}},
		{name: "its tests may",
			files: map[string]string{"pkg/rules/a_test.go": "package rules\nimport _ \"os\"\n"}},
		{name: "a closed package must not read the clock, whatever it calls it",
			files: map[string]string{"pkg/rules/a.go": "package rules\nimport clock \"time\"\nvar now = clock.Now\nvar second = clock.Second\n"},
			want:  []string{"pkg/rules/a.go:3: uses clock.Now, but pkg/rules is a closed package"}},
		{name: "a data package neither",
			files: map[string]string{"pkg/words/a.go": "package words\nimport metav1 \"k8s.io/apimachinery/pkg/apis/meta/v1\"\nvar now = metav1.Now()\n"},
			want:  []string{"pkg/words/a.go:3: uses metav1.Now, but pkg/words is a data package"}},
		{name: "a data package may import the Object interface, not a context",
			files: map[string]string{"pkg/words/a.go": "package words\nimport (\n\"context\"\n\"sigs.k8s.io/controller-runtime/pkg/client\"\n)\n"},
			want:  []string{"pkg/words/a.go: imports context, but pkg/words is a data package"}},
		{name: "an open package may do all this",
			files: map[string]string{"pkg/hands/a.go": "package hands\nimport (\n\"context\"\n\"time\"\n)\nvar now = time.Now\n"}},
	})
}

func TestLight(t *testing.T) {
	runRules(t, func(tree *Tree) []Violation { return Light(tree, []string{"pkg/hands"}, []string{"heavy.io/..."}) }, []rule{
		{name: "a light package must not reach a library of the engine",
			files: map[string]string{"pkg/hands/a.go": "package hands\nimport _ \"$/pkg/words\"\n", "pkg/words/a.go": "package words\nimport _ \"heavy.io/x\"\n"},
			want:  []string{"pkg/words/a.go: imports heavy.io/x, but pkg/hands reaches pkg/words"}},
		{name: "its tests and other packages may",
			files: map[string]string{"pkg/hands/a_test.go": "package hands\nimport _ \"heavy.io/x\"\n", "pkg/words/a.go": "package words\nimport _ \"heavy.io/x\"\n"}},
	})
}

func TestTics(t *testing.T) {
	files := map[string]string{
		"pkg/hands/doc.go":          header + "// Package hands waits for others.\npackage hands\n\n// wave does\n// what a wave does.\nfunc wave() {}\n",
		"pkg/hands/hands_test.go":   header + "// Package hands tests what waves.\npackage hands\n",
		"pkg/hands/zz_generated.go": header + "// Package hands holds what is generated.\npackage hands\n",
	}
	runRules(t, func(t *Tree) []Violation { return Tics(t, 667) }, []rule{{"as many as are accepted", files, nil}})
	runRules(t, func(t *Tree) []Violation { return Tics(t, 666) }, []rule{{"more", files, []string{"the comments: 2 tics"}}})
}
