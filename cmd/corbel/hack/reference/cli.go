// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
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

// cli writes the page of the commands.
func (r *reference) cli() (*page, error) {
	p := newPage("Commands", "The programs, their commands and their flags. Each has the flag `--help`, too.")
	for _, program := range programs() {
		p.line("\n## %s\n\n%s", program.command.Name(), program.introduction)
		r.command(p, program.command)
	}
	return p, nil
}

// command writes what a command does and its flags, and then the commands below it.
func (r *reference) command(p *page, c *cobra.Command) {
	name := c.CommandPath()
	if c.Short == "" {
		r.lack("the command %s lacks a sentence in Short", name)
	}
	if c.HasParent() {
		p.line("\n### %s\n\n%s.", name, escape(strings.TrimSuffix(c.Short, ".")))
		if c.Long != "" {
			p.line("\n%s", c.Long)
		}
	}
	if c.Runnable() {
		p.line("\nUsage: `%s`", c.UseLine())
	}
	if c.Example != "" {
		p.line("\nExamples:\n\n```sh\n%s\n```", unindented(c.Example))
	}
	r.flags(p, c)
	commands := slices.DeleteFunc(c.Commands(), func(c *cobra.Command) bool { return !c.IsAvailableCommand() })
	for _, below := range commands {
		r.command(p, below)
	}
}

// flags writes the flags of a command, unless they are those of the command above it.
func (r *reference) flags(p *page, c *cobra.Command) {
	var flags []*pflag.Flag
	repeated := c.HasParent() && c.Parent().Runnable()
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
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
	p.table("flag", "default", "meaning")
	for _, f := range flags {
		if f.Usage == "" {
			r.lack("the flag --%s of %s lacks a text", f.Name, c.CommandPath())
		}
		kind, usage := pflag.UnquoteUsage(f)
		name, value := "--"+f.Name, f.DefValue
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if value == "[]" || f.Value.Type() == "bool" && value == "false" {
			value = ""
		}
		p.row(code(strings.TrimSpace(name+" "+kind)), code(value), escape(capitalized(strings.Join(strings.Fields(usage), " "))))
	}
}

// unindented returns the lines of an example without the indentation that cobra wants.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}
