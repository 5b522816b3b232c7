// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	_ "embed" // for the reasons
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// reasonsText has an entry for each reason, which begins with the name. Empty lines separate the entries. The program
// cmd/corbel/hack/reference writes it.
//
//go:embed reasons.txt
var reasonsText string

// reasons returns the names of all reasons, in their order, and the entries by name.
func reasons() (names []string, entries map[string]string) {
	entries = map[string]string{}
	for entry := range strings.SplitSeq(strings.TrimSpace(reasonsText), "\n\n") {
		name, _, _ := strings.Cut(entry, "\n")
		names, entries[name] = append(names, name), entry
	}
	return names, entries
}

// explainCommand returns the only command here that needs no cluster.
func (f *frame) explainCommand() *cobra.Command {
	names, entries := reasons()
	return &cobra.Command{
		Use: "explain [REASON]", Short: "Explain a reason of a condition or an event, and say what to do",
		Long: "Explain a reason of a condition or an event: its meaning, the conditions and the type of event that have it, and what to do. " +
			"Without a name, list all reasons. The command needs no cluster.",
		Example:   "  corbel explain DeletionBlocked",
		Args:      cobra.MaximumNArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				_, err := fmt.Fprintln(f.Out, strings.Join(names, "\n"))
				return err
			}
			at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, arguments[0]) })
			if at < 0 {
				return unknownReason(arguments[0], names)
			}
			_, err := fmt.Fprintln(f.Out, entries[names[at]])
			return err
		},
	}
}

// unknownReason refuses a name, and names the reasons that are similar.
func unknownReason(name string, names []string) error {
	known := &cobra.Command{SuggestionsMinimumDistance: 3}
	for _, name := range names {
		known.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	if similar := known.SuggestionsFor(name); len(similar) > 0 {
		return usage("the reason %q is unknown; did you mean %s?", name, strings.Join(similar, " or "))
	}
	return usage("the reason %q is unknown; \"corbel explain\" lists all", name)
}
