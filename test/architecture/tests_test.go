// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"strings"
	"testing"
)

func TestInvariants(t *testing.T) {
	var rows []string
	for _, group := range invariants {
		for n := range group.count {
			rows = append(rows, fmt.Sprintf("| %s%d | it shines | held | `TestLight` |", group.kind, n+1))
		}
	}
	with := func(change func([]string) []string) map[string]string {
		return map[string]string{invariantsFile: strings.Join(change(append([]string(nil), rows...)), "\n") + "\n"}
	}
	runRules(t, Invariants, []rule{
		{name: "all are there", files: with(func(r []string) []string { return r })},
		{name: "one is not held, and says so", files: with(func(r []string) []string {
			r[0] = "| S1 | it shines | not yet: it is dark | - |"
			return r
		})},
		{name: "no list", files: map[string]string{"docs/other.md": ""}, want: []string{invariantsFile + ": does not exist"}},
		{name: "one is missing", files: with(func(r []string) []string { return r[1:] }), want: []string{invariantsFile + ":1: has 0 rows for S1, want 1"}},
		{name: "one has two rows", files: with(func(r []string) []string { return append(r, r[0]) }), want: []string{invariantsFile + ":1: has 2 rows for S1, want 1"}},
		{name: "an unknown invariant", files: with(func(r []string) []string { return append(r, "| S26 | it shines | held | `TestLight` |") }),
			want: []string{invariantsFile + ":1: has a row for S26"}},
		{name: "one that nothing holds", files: with(func(r []string) []string {
			r[1] = "| S2 | it shines | held | hope |"
			return r
		}), want: []string{invariantsFile + ":2: S2 is held by no test"}},
	})
}

func TestNamedTests(t *testing.T) {
	tests := "package a\nimport \"testing\"\nfunc TestLight(t *testing.T) {\n\tt.Run(\"it shines\", nil)\n}\nfunc Example() {}\n"
	with := func(document string) map[string]string {
		return map[string]string{"a/a_test.go": tests, "a/b.go": "package a\nfunc TestLooksLikeOne() {}\n", "docs/rules.md": document}
	}
	runRules(t, NamedTests, []rule{
		{name: "a test that exists", files: with("`TestLight` and `Example`\n")},
		{name: "a subtest that exists", files: with("`TestLight/it shines`\n")},
		{name: "a list of make", files: map[string]string{"a/a_test.go": tests, "Makefile": "VERSION_TESTS := TestLight|TestDark\n"},
			want: []string{"Makefile:1: names the test TestDark, which does not exist"}},
		{name: "words that are no code", files: with("TestNothing\n")},
		{name: "a test that is gone", files: with("\n| a | `TestDark` |\n"),
			want: []string{"docs/rules.md:2: names the test TestDark, which does not exist"}},
		{name: "a subtest that is gone", files: with("`TestLight/it glows`\n"),
			want: []string{`docs/rules.md:1: names "it glows" of the test TestLight, which has no such subtest`}},
		{name: "a function that is no test", files: with("`TestLooksLikeOne`\n"),
			want: []string{"docs/rules.md:1: names the test TestLooksLikeOne, which does not exist"}},
	})
}
