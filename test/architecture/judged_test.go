// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import "testing"

func TestJudged(t *testing.T) {
	const imports = "import (\n\t\"$/pkg/component\"\n\t\"$/pkg/conditions/conditionstest\"\n)\n"
	runRules(t, Judged, []rule{
		{name: "a test that makes passes judges",
			files: map[string]string{"a/a_test.go": "package a\n" + imports + "func TestA(t *T) {\n\tcomponent.NewReconciler[X](1)\n\tconditionstest.Check(t, 1)\n}\n"}},
		{name: "so does one whose bed judges",
			files: map[string]string{
				"a/a_test.go":   "package a\nimport \"$/pkg/component\"\nfunc TestA(t *T) { component.NewReconciler[X](1) }\n",
				"a/bed_test.go": "package a\n" + imports + "func newBed(t *T) { t.Cleanup(func() { conditionstest.Check(t, 1) }) }\n",
			}},
		{name: "one that does not is reported",
			files: map[string]string{"a/a_test.go": "package a\nimport c \"$/pkg/component\"\nfunc TestA(t *T) { c.NewReconciler[X](1) }\n"},
			want:  []string{"a/a_test.go:3: makes passes and does not judge the conditions"}},
		{name: "the judgement of another test is no bed",
			files: map[string]string{"a/a_test.go": "package a\n" + imports + "func TestA(t *T) { component.NewReconciler[X](1) }\nfunc TestB(t *T) { conditionstest.Check(t, 1) }\n"},
			want:  []string{"a/a_test.go:6: makes passes"}},
		{name: "tests inside a package of passes are seen, too",
			files: map[string]string{"pkg/lifecycle/a_test.go": "package lifecycle\nfunc TestA(t *T) { NewLoop(1) }\nfunc TestB(t *T) { NewLoop[X](1) }\n"},
			want:  []string{"pkg/lifecycle/a_test.go:2: makes passes", "pkg/lifecycle/a_test.go:3: makes passes"}},
		{name: "examples and programs are not tests",
			files: map[string]string{
				"a/a_test.go": "package a\nimport \"$/pkg/component\"\nfunc ExampleA() { component.NewReconciler[X](1) }\n",
				"b/b.go":      "package b\nimport \"$/pkg/component\"\nfunc main() { component.NewReconciler[X](1) }\n",
			}},
	})
}
