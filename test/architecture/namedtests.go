// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// testInText is a test that a document names as code: `TestName`, or
// `TestName/name of a subtest`.
var testInText = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9_]*|Example[A-Za-z0-9_]*)(?:/([^`]+))?`")

// NamedTests checks that every test that a document names exists. The name of a
// subtest must stand as a string in the file of the test, or in another test file
// of its package, if it is not put together.
func NamedTests(t *Tree) []Violation {
	tests := t.tests()
	var found []Violation
	for _, text := range t.Texts {
		if path.Ext(text.Path) != ".md" {
			continue
		}
		for number, line := range strings.Split(text.Content, "\n") {
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
