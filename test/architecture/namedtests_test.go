// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import "testing"

func TestNamedTests(t *testing.T) {
	tests := "package a\nimport \"testing\"\nfunc TestLight(t *testing.T) {\n\tt.Run(\"it shines\", nil)\n}\nfunc Example() {}\n"
	with := func(document string) map[string]string {
		return map[string]string{"a/a_test.go": tests, "a/b.go": "package a\nfunc TestLooksLikeOne() {}\n", "docs/rules.md": document}
	}
	runRules(t, NamedTests, []rule{
		{name: "a test that exists", files: with("`TestLight` and `Example`\n")},
		{name: "a subtest that exists", files: with("`TestLight/it shines`\n")},
		{name: "words that are no code", files: with("TestNothing\n")},
		{name: "a test that is gone", files: with("\n| a | `TestDark` |\n"),
			want: []string{"docs/rules.md:2: names the test TestDark, which does not exist"}},
		{name: "a subtest that is gone", files: with("`TestLight/it glows`\n"),
			want: []string{`docs/rules.md:1: names "it glows" of the test TestLight, which has no such subtest`}},
		{name: "a function that is no test", files: with("`TestLooksLikeOne`\n"),
			want: []string{"docs/rules.md:1: names the test TestLooksLikeOne, which does not exist"}},
	})
}
