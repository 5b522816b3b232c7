// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corbel-run/corbel/cmd/corbel/internal/command"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/operator"
)

// programOf is a program with its introduction.
type programOf struct {
	introduction string
	command      *cobra.Command
}

// programs are the programs of the page, in its order. The name of an operator is that of its reconciler.
func programs() []programOf {
	return []programOf{
		{"The command of this repository: `go install ./cmd/corbel`.", command.New()},
		{"The program of an operator that calls `operator.Main`. Its name is that of the reconciler; here it is `shop.example.com`.\n" +
			"Without a command, it does the same as with `run`.", operator.Options[component.Component]{Name: "shop.example.com"}.Command()},
	}
}

// clusterFlags returns the flags that all commands with the flag --context have, and the names of the other commands.
func clusterFlags(root *cobra.Command) (shared *pflag.FlagSet, others []string) {
	for _, c := range root.Commands() {
		switch {
		case !c.IsAvailableCommand():
		case c.Flags().Lookup("context") == nil:
			others = append(others, code(c.Name()))
		default:
			common := pflag.NewFlagSet("cluster", pflag.ContinueOnError)
			c.Flags().VisitAll(func(f *pflag.Flag) {
				if shared == nil || isShared(shared, f) {
					common.AddFlag(f)
				}
			})
			shared = common
		}
	}
	return shared, others
}

// isShared reports whether the flag is one of clusterFlags.
func isShared(cluster *pflag.FlagSet, f *pflag.Flag) bool {
	shared := cluster.Lookup(f.Name)
	return shared != nil && shared.Usage == f.Usage
}

// cli writes the page of the commands.
func (r *reference) cli() (*page, error) {
	p := newPage("Commands", "The programs, their commands and their flags. Each command has the flag `--help`.")
	all := programs()
	cluster, others := clusterFlags(all[0].command)
	var names []string
	cluster.VisitAll(func(f *pflag.Flag) { names = append(names, code(flagName(f))) })
	p.line("\n## Flags of every command that talks to a cluster\n\nAll commands of `corbel` have these flags of kubectl, except %s. `kubectl options` explains them, and the sections of the commands leave them out:\n\n%s.",
		strings.Join(others, ", "), strings.Join(names, ", "))
	for _, program := range all {
		p.line("\n## %s\n\n%s", program.command.Name(), program.introduction)
		r.command(p, cluster, program.command)
	}
	return p, nil
}

// command writes the section of a command, and then those of the commands below it.
func (r *reference) command(p *page, cluster *pflag.FlagSet, c *cobra.Command) {
	name := c.CommandPath()
	if c.Short == "" {
		r.lack("the command %s lacks a sentence in Short", name)
	}
	if c.HasParent() {
		p.line("\n### %s\n\n%s", name, escape(cmp.Or(c.Long, strings.TrimSuffix(c.Short, ".")+".")))
	}
	c.DisableFlagsInUseLine = true
	if usage := c.UseLine(); c.Runnable() && usage != name {
		p.line("\nUsage: `%s`", usage)
	}
	if strings.Contains(c.Example, "\n") && !c.HasAvailableSubCommands() { // a single one repeats the usage
		p.line("\n```sh\n%s\n```", unindented(c.Example))
	}
	r.flags(p, cluster, c)
	commands := slices.DeleteFunc(c.Commands(), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
	for _, below := range commands {
		r.command(p, cluster, below)
	}
}

// flags writes the flags of a command, unless they are those of the command above it.
func (r *reference) flags(p *page, cluster *pflag.FlagSet, c *cobra.Command) {
	var flags []*pflag.Flag
	repeated := c.HasParent() && c.Parent().Runnable()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden && !isShared(cluster, f) {
			flags = append(flags, f)
			repeated = repeated && c.Parent().Flags().Lookup(f.Name) != nil
		}
	})
	switch {
	case len(flags) == 0:
		return
	case repeated:
		p.line("\nThe flags are those of `%s`.", c.Parent().CommandPath())
		return
	}
	p.line("")
	var logs []string
	for _, f := range flags {
		if strings.HasPrefix(f.Name, "zap-") {
			logs = append(logs, code(flagName(f)))
			continue
		}
		r.flag(p, c.CommandPath(), f)
	}
	if len(logs) > 0 {
		p.line("- %s: the flags of controller-runtime for the log, which `--help` explains", strings.Join(logs, ", "))
	}
}

// flag writes the line of a flag.
func (r *reference) flag(p *page, command string, f *pflag.Flag) {
	if f.Usage == "" {
		r.lack("the flag --%s of %s lacks a text", f.Name, command)
	}
	_, usage := pflag.UnquoteUsage(f)
	value := code(f.DefValue)
	if f.DefValue == "[]" || f.Value.Type() == "bool" && f.DefValue == "false" {
		value = ""
	}
	if value != "" {
		value = " (default " + value + ")"
	}
	p.line("- %s%s: %s", code(flagName(f)), value, escape(strings.TrimSuffix(strings.Join(strings.Fields(usage), " "), ".")))
}

// flagName returns the names of a flag, and the kind of its value.
func flagName(f *pflag.Flag) string {
	kind, _ := pflag.UnquoteUsage(f)
	name := "--" + f.Name
	if f.Shorthand != "" {
		name = "-" + f.Shorthand + ", " + name
	}
	return strings.TrimSpace(name + " " + kind)
}

// unindented returns the lines of an example without the indentation that cobra wants.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
