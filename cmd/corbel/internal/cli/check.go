// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"

	"github.com/fatih/color"
	"github.com/spf13/cobra"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// findingList is what check prints as JSON and YAML.
type findingList struct {
	typeMeta `json:",inline"`
	Items    []findingSummary `json:"items"`
}

// findingSummary is a finding in JSON and YAML.
type findingSummary struct {
	Level string `json:"level"` // problem or note
	About string `json:"about"`
	Text  string `json:"text"`
}

func (f *frame) checkCommand() *cobra.Command {
	var o *output
	var allNamespaces, restore bool
	command := &cobra.Command{
		Use: "check [KIND]", Short: "Check operators, their CustomResourceDefinitions and your rights",
		Long: "Check the Leases and Deployments of operators, whether a second operator of the same name holds a Lease, the CustomResourceDefinitions of components, " +
			"and your rights for the other commands. With --restore, check digest keys, recorded objects and Secrets of components in a cluster that was restored from a " +
			"backup, before its operators start. The exit code is 1 if there is a problem. Notes are no problems.",
		Example: "  corbel check\n  corbel check shops -A\n  corbel check --restore -A",
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) > 1 {
				return usage("name at most one kind; got %q", arguments)
			}
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
			reader, err := f.reader()
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return kinds(reader, begin), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.check(c.Context(), arguments, allNamespaces, restore, o)
		},
	}
	o = addOutputFlag(command)
	command.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "look at components of all namespaces")
	command.Flags().BoolVar(&restore, "restore", false, "check what must be there before the operators start in a cluster that was restored")
	return command
}

func (f *frame) check(ctx context.Context, arguments []string, allNamespaces, restore bool, o *output) error {
	connection, err := f.connect()
	if err != nil {
		return err
	}
	var types []inspect.Type
	if len(arguments) == 1 {
		var t inspect.Type
		t, err = resolve(connection.reader, arguments[0])
		types = []inspect.Type{t}
	} else {
		types, err = connection.reader.Types()
	}
	if errors.Is(err, inspect.ErrNoTypes) {
		return f.printFindings([]inspect.Finding{{About: "the cluster", Text: Explain(err), Problem: true}}, o)
	}
	if err != nil {
		return err
	}
	namespace, err := f.namespace()
	if err != nil {
		return err
	}
	within := namespace
	if allNamespaces {
		within = ""
	}
	check := connection.reader.Check
	if restore {
		check = connection.reader.CheckRestore
	}
	findings, err := check(ctx, types, within, f.now())
	if err != nil {
		return err
	}
	if restore {
		return f.printFindings(findings, o)
	}
	rights, err := inspect.CheckRights(ctx, connection.client, types, namespace)
	if err != nil {
		return err
	}
	return f.printFindings(append(findings, rights...), o)
}

func (f *frame) printFindings(findings []inspect.Finding, o *output) error {
	list := findingList{typeMeta: outputOf("FindingList"), Items: []findingSummary{}}
	var rows [][]cell
	problems := 0
	for _, finding := range findings {
		level := colored("note", color.FgYellow)
		if finding.Problem {
			problems++
			level = colored("problem", color.FgRed)
		}
		list.Items = append(list.Items, findingSummary{level.text, finding.About, finding.Text})
		rows = append(rows, []cell{level, plain(finding.About), plain(finding.Text)})
	}
	var err error
	switch {
	case !o.isText():
		err = f.encode(o.format, list)
	case len(rows) == 0:
		err = f.rows([][]cell{{plain("No problems found.")}})
	default:
		table := f.table("LEVEL", "ABOUT", "FINDING")
		table.width = 0 // what to do stands at the end of a finding
		err = table.print(rows)
	}
	if err == nil && problems > 0 {
		return errNotSo
	}
	return err
}
