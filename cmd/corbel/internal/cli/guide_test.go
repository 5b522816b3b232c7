// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a command in the guide, with what it prints.
type example struct {
	command, prints string
	code            string // as the guide has it; empty means 0
}

// readGuide returns the commands of docs/howto-cli.md: lines in fences that begin with "$ corbel".
func readGuide(t *testing.T) []example {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/howto-cli.md")
	if err != nil {
		t.Fatal(err)
	}
	var examples []example
	within, code := false, false
	for line := range strings.Lines(string(text)) {
		command, isCommand := strings.CutPrefix(line, "$ corbel ")
		switch {
		case strings.HasPrefix(line, "```"):
			within, code = false, false
		case isCommand:
			within = true
			examples = append(examples, example{command: strings.TrimSpace(command)})
		case !within:
		case strings.HasPrefix(line, "$ echo $?"):
			code = true
		case code:
			examples[len(examples)-1].code = strings.TrimSpace(line)
		default:
			examples[len(examples)-1].prints += line
		}
	}
	if len(examples) < 8 {
		t.Fatalf("the guide has %d commands", len(examples))
	}
	return examples
}

// steers reports whether the command of an example changes the component.
func (e example) steers() bool {
	name, _, _ := strings.Cut(e.command, " ")
	return slices.Contains([]string{"reconcile", "suspend", "resume", "plan", "rollback", "wait"}, name)
}

// followGuide runs commands of the guide and compares what they print.
func (b *bed) followGuide(t *testing.T, examples []example, chosen func(example) bool) {
	for _, e := range examples {
		if !chosen(e) {
			continue
		}
		got := b.run(strings.Fields(e.command)...)
		want := answer{out: e.prints}
		if e.code != "" {
			want.code = int(e.code[0] - '0')
		}
		if strings.HasSuffix(e.command, " --wait") && got.code == 0 {
			got.err = "" // the progress
		}
		// The guide does not show on which stream something is printed.
		if diff := cmp.Diff(want.text(), answer{out: got.out + got.err, code: got.code}.text()); diff != "" {
			t.Errorf("corbel %s (-guide +got):\n%s", e.command, diff)
		}
	}
}
