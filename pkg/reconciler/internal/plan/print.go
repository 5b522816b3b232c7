// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
)

// String returns the plan as text, one line per step, wait and note. It is
// what users are shown and what the tests of this package pin.
func (p Plan) String() string {
	var b strings.Builder
	if p.MustRecord {
		fmt.Fprintf(&b, "record   %d objects\n", len(p.Inventory))
	}
	for _, s := range p.Steps {
		fmt.Fprintf(&b, "%-8s %s: %s", s.Verb, s.Key, s.Because)
		if s.Guard != GuardNone {
			fmt.Fprintf(&b, " (if %s)", s.Guard)
		}
		b.WriteByte('\n')
	}
	for _, wait := range p.Waiting {
		fmt.Fprintf(&b, "wait     %s: %s: %s\n", wait.Key, wait.Reason, wait.Message)
	}
	for _, d := range p.Deviations {
		fmt.Fprintf(&b, "drifted  %s: %s\n", d.Key, d.Drift)
	}
	for _, key := range p.Ignored {
		fmt.Fprintf(&b, "ignored  %s: it exists and is not ours\n", key)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "note     %s: %s\n", note.Key, note.Message)
	}
	if b.Len() == 0 {
		return "done\n"
	}
	return b.String()
}
