// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
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

// sourcesOf returns sources with the given files.
func sourcesOf(t *testing.T, files map[string]string) *reference {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := load(folder, ".")
	if err != nil {
		t.Fatal(err)
	}
	return &reference{source: s}
}

func TestWhatACommentLacksIsReported(t *testing.T) {
	const annotation = `package p

// AnnotationColour is the colour.
//
// On: dependent objects
// Format: red or
// blue
// Example: shop.example.com/color: red
const AnnotationColour = "colour"
`
	const reasons = `package v1alpha1

const (
	// ReasonLost means that it is lost.
	ReasonLost = "Lost"
	// ReasonFound means that it is found.
	//
	// Conditions: Ready True
	// State: Ready
	// What to do: nothing.
	ReasonFound = "Found"
)
`
	const events = `package v1alpha1

// reasonLoud means that it is loud.
//
// Event type: Loud
// What to do: nothing.
const reasonLoud = "Loud"
`
	r := sourcesOf(t, map[string]string{"pkg/p/p.go": annotation, "api/v1alpha1/status.go": reasons, "pkg/q/q.go": events})
	for _, write := range []func() (*page, error){r.annotations, r.conditions, r.events} {
		if _, err := write(); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		`the comment of api/v1alpha1.ReasonLost lacks a line "Conditions: ..."`,
		`the comment of api/v1alpha1.ReasonLost lacks a line "Conditions: ..." or "Event type: ..."`,
		`the comment of api/v1alpha1.ReasonLost lacks a line "State: ..."`,
		`the comment of api/v1alpha1.ReasonLost lacks a line "What to do: ..."`,
		`the comment of pkg/p.AnnotationColour lacks a line "Default: ..."`,
		`the comment of pkg/p.AnnotationColour needs a line that begins with "Level: " and is one of daily, special and migration`,
		`the event type in the comment of pkg/q.reasonLoud is "Loud", and must be Normal or Warning`,
		`the example in the comment of pkg/p.AnnotationColour does not begin with "shop.example.com/colour: "`,
	}
	slices.Sort(r.lacking)
	if d := cmp.Diff(want, slices.Compact(r.lacking)); d != "" {
		t.Errorf("what is lacking (-want +got):\n%s", d)
	}
}

func TestAComment(t *testing.T) {
	r := sourcesOf(t, map[string]string{"p/p.go": `package p

// Name means that it
// has a|b.
//
//	code
//
// More <of> it.
// Format: one
// two
//
// After.
//
// +optional
const Name = 1
`})
	c := r.packages["p"].constants["Name"].comment
	want := []string{"`name` means that it has a\\|b.", `More \<of> it.`, "After."}
	if d := cmp.Diff(want, c.paragraphsAbout("Name", "name")); d != "" {
		t.Errorf("paragraphs (-want +got):\n%s", d)
	}
	if got, want := c.inTable("Name"), `It has a\|b. More \<of> it. After.`; got != want {
		t.Errorf("in a table: %q, want %q", got, want)
	}
	if got := c.value(keyFormat); got != "one two" || !c.isOptional() {
		t.Errorf("format %q, optional: %t", got, c.isOptional())
	}
}

func TestNumbers(t *testing.T) {
	r := sourcesOf(t, map[string]string{
		"other/other.go": "package other\n\nconst Delay = 90 * time.Second\n",
		"p/p.go": `package p

import (
	"time"

	"github.com/corbel-run/corbel/other"
)

const (
	count  = 100_000
	size   = 1<<20 - 16<<10
	odd    = 1<<10 + 1
	bytes  = 7 << 30
	single = time.Hour
	many   = 2 * single
	year   = 10 * 365 * 24 * time.Hour
	part   = minute / 4
	minute = time.Minute
	far    = other.Delay
	// Unit: pages
	pages = 2000
	below = 0 - 12_345
	cycle = cycle
)
`})
	for name, want := range map[string]string{
		"count": "100,000", "size": "1,008 KiB", "odd": "1,025 bytes", "bytes": "7 GiB", "many": "2 hours", "year": "10 years",
		"single": "1 hour", "part": "15 seconds", "minute": "1 minute", "far": "90 seconds", "pages": "2,000 pages", "below": "-12,345", "cycle": "",
	} {
		if got := r.packages["p"].constants[name].number(); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
