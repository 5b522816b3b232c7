// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	files, err := filepath.Glob(filepath.Join(root, folder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(root, folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
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
	s, err := load(root, "pkg")
	if err != nil {
		t.Fatal(err)
	}
	if names := (&reference{source: s}).unlisted(); len(names) > 0 {
		t.Errorf("add these structs to optionTypes or to otherOptions: %s", strings.Join(names, ", "))
	}
}
