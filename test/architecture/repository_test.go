// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

const root = "../.."

var rewrite = flag.Bool("rewrite", false, "draw the floors of rooms.go into "+pictureFile)

// TestRepository applies every rule to this repository.
func TestRepository(t *testing.T) {
	tree := loadRepository(t)
	checks := []struct {
		name string
		run  func() []Violation
	}{
		{"imports point down", func() []Violation { return Floors(tree, rooms) }},
		{"packages that decide are pure", func() []Violation { return Purity(tree, rooms) }},
		{"heavy libraries stay where they belong", func() []Violation { return Libraries(tree, rooms, libraries) }},
		{"packages without the engine are light", func() []Violation { return Light(tree, light, engineOnly) }},
		{"packages are described", func() []Violation { return PackageDocs(tree) }},
		{"public packages have an example", func() []Violation { return Examples(tree, rooms) }},
		{"sources have the license header", func() []Violation { return Headers(tree) }},
		{"nothing unfinished or private is in the text", func() []Violation { return Words(tree, words) }},
		{"comments name things and who acts", func() []Violation { return Tics(tree, ticLimit) }},
		{"the public face does not grow", func() []Violation { return SmallFace(tree, rooms, faceLimit) }},
		{"workflows name actions by commits", func() []Violation { return Workflows(tree) }},
		{"documents agree with the tree", func() []Violation { return Documents(tree, rooms) }},
		{"documents and the Makefile name tests that exist", func() []Violation { return NamedTests(tree) }},
		{"tests that reconcile check the conditions", func() []Violation { return CheckedConditions(tree) }},
		{"every invariant is listed and held", func() []Violation { return Invariants(tree) }},
	}
	for _, check := range checks {
		t.Run(check.name, func(t *testing.T) {
			for _, v := range check.run() {
				t.Error(v)
			}
		})
	}
}

// TestRepositoryIsSeen fails if the loader looks at the wrong place, where no
// rule could be broken.
func TestRepositoryIsSeen(t *testing.T) {
	tree := loadRepository(t)
	check.SameNamed(t, "module", "github.com/corbel-run/corbel", tree.Module)
	for _, folder := range []string{"api/v1alpha1", "pkg/types", "pkg/reconciler/internal/plan", "test/architecture"} {
		at := slices.IndexFunc(tree.Packages, func(p *Package) bool { return p.Path == folder })
		if at < 0 {
			t.Errorf("package %s was not found", folder)
			continue
		}
		if !slices.ContainsFunc(tree.Packages[at].Files, func(f *File) bool { return len(f.Imports) > 0 }) {
			t.Errorf("no import was found in package %s", folder)
		}
	}
	for _, name := range []string{"Makefile", ".ci/run", "README.md", updatesFile, workflowsFolder + "/ci.yaml", writtenWorkflow} {
		if _, ok := tree.text(name); !ok {
			t.Errorf("%s was not found", name)
		}
	}
}

func loadRepository(t *testing.T) *Tree {
	t.Helper()
	if *rewrite {
		check.NoError(t, os.WriteFile(filepath.Join(root, pictureFile), []byte(renderPicture(rooms)), 0o644))
	}
	tree := check.Must(Load(os.DirFS(root)))(t)
	return tree
}
