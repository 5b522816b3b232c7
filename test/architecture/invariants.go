// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// invariantsFile lists what must hold whatever happens, and what holds it.
const invariantsFile = "docs/invariants.md"

// invariants are how many there are of each kind.
var invariants = []struct {
	kind  string
	count int
}{{"S", 24}, {"O", 8}, {"L", 12}, {"P", 12}}

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
		tested := testInText.MatchString(row[4]) || strings.Contains(row[4], "model") || strings.Contains(row[4], "audit") || strings.Contains(row[4], "lives")
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
