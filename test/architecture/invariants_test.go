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
		{name: "one is there twice", files: with(func(r []string) []string { return append(r, r[0]) }), want: []string{invariantsFile + ":1: has 2 rows for S1, want 1"}},
		{name: "one that nobody knows", files: with(func(r []string) []string { return append(r, "| S25 | it shines | held | `TestLight` |") }),
			want: []string{invariantsFile + ":1: has a row for S25"}},
		{name: "one that nothing holds", files: with(func(r []string) []string {
			r[1] = "| S2 | it shines | held | hope |"
			return r
		}), want: []string{invariantsFile + ":2: S2 is held by no test"}},
	})
}
