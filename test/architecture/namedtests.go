// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// testInText is a test that a document names as code: `TestName`, or
// `TestName/name of a subtest`.
var testInText = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*|Example[A-Za-z0-9_]*)(?:/([^`]+))?`")

// versionTests is the list of tests that make test-versions runs, separated by "|".
var versionTests = regexp.MustCompile(`^VERSION_TESTS := (.*)$`)

// NamedTests checks that every test exists that a document or the list for make test-versions names. The name of a
// subtest must be a string in the file of the test, or in another test file
// of its package, if it is not put together.
func NamedTests(t *Tree) []Violation {
	tests := t.tests()
	var found []Violation
	for _, text := range t.Texts {
		if path.Ext(text.Path) != ".md" && text.Path != "Makefile" {
			continue
		}
		for number, line := range strings.Split(text.Content, "\n") {
			if list := versionTests.FindStringSubmatch(line); list != nil {
				line = "`" + strings.ReplaceAll(list[1], "|", "` `") + "`"
			}
			for _, match := range testInText.FindAllStringSubmatch(line, -1) {
				name, subtest := match[1], match[2]
				packages := tests[name]
				switch {
				case len(packages) == 0:
					found = append(found, violation(lineOf(text, number+1), "names the test %s, which does not exist", name))
				case subtest != "" && !t.hasSubtest(packages, subtest):
					found = append(found, violation(lineOf(text, number+1), "names %q of the test %s, which has no such subtest", subtest, name))
				}
			}
		}
	}
	return found
}

// tests returns the packages of every test and every example, by its name.
func (t *Tree) tests() map[string][]*Package {
	tests := map[string][]*Package{}
	for _, p := range t.Packages {
		for _, file := range p.Files {
			if !file.Test {
				continue
			}
			for _, declaration := range file.Syntax.Decls {
				function, ok := declaration.(*ast.FuncDecl)
				if ok && function.Recv == nil {
					tests[function.Name.Name] = append(tests[function.Name.Name], p)
				}
			}
		}
	}
	return tests
}

// hasSubtest looks for the text as a string in the tests of the packages.
func (t *Tree) hasSubtest(packages []*Package, text string) bool {
	for _, p := range packages {
		for _, file := range p.Files {
			source, ok := t.text(file.Path)
			if ok && file.Test && (strings.Contains(source.Content, strconv.Quote(text)) || strings.Contains(source.Content, "`"+text+"`")) {
				return true
			}
		}
	}
	return false
}

// invariantsFile lists the invariants, and the tests that hold them.
const invariantsFile = "docs/contributing/invariants.md"

// invariants are how many there are of each kind.
var invariants = []struct {
	kind  string
	count int
}{{"S", 25}, {"O", 8}, {"L", 12}, {"P", 12}}

var invariantRow = regexp.MustCompile(`^\| ([SOLP]\d+) \| (.+) \| (.+) \| (.+) \|$`)

// Invariants checks that every invariant has a row with a state, and that what
// is held is held by a test.
func Invariants(t *Tree) []Violation {
	text, ok := t.text(invariantsFile)
	if !ok {
		return []Violation{violation(invariantsFile, "does not exist")}
	}
	var found []Violation
	var seen []string
	for number, line := range strings.Split(text.Content, "\n") {
		row := invariantRow.FindStringSubmatch(line)
		if row == nil {
			continue
		}
		seen = append(seen, row[1])
		tested := testInText.MatchString(row[4]) || strings.Contains(row[4], "model") || strings.Contains(row[4], "audit")
		if strings.HasPrefix(row[3], "held") && !tested {
			found = append(found, violation(lineOf(text, number+1), "%s is held by no test", row[1]))
		}
	}
	var all []string
	for _, group := range invariants {
		for n := range group.count {
			all = append(all, fmt.Sprint(group.kind, n+1))
		}
	}
	for _, id := range all {
		if n := len(slices.DeleteFunc(slices.Clone(seen), func(other string) bool { return other != id })); n != 1 {
			found = append(found, violation(lineOf(text, 1), "has %d rows for %s, want 1", n, id))
		}
	}
	for _, id := range seen {
		if !slices.Contains(all, id) {
			found = append(found, violation(lineOf(text, 1), "has a row for %s, which is none of the invariants", id))
		}
	}
	return found
}
