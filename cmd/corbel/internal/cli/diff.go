// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// diffOutput is what diff prints as JSON and YAML.
type diffOutput struct {
	typeMeta  `json:",inline"`
	Component objectReference `json:"component"`
	// Items are the dependents that are not as they were applied.
	Items []dependentSummary `json:"items"`
	// Reported is what the operator says about objects that it leaves as they are.
	Reported string `json:"reported,omitempty"`

	of        inspect.Component
	different []inspect.Dependent
}

// diffList is what diff prints of several components as JSON and YAML.
type diffList struct {
	typeMeta `json:",inline"`
	Items    []diffOutput `json:"items"`
}

func (f *frame) diffCommand() *cobra.Command {
	var o *output
	var s *scope
	var revisions string
	command := &cobra.Command{
		Use: "diff [" + componentUse + "]", Short: "Show what other clients changed of the dependents of components",
		Long: "Show which dependents of a component are missing, and which fields other clients set, with field manager and time. A field that another client removed " +
			"leaves no trace. Changes of Kubernetes' own controllers, of the status and of the scale do not count. Without a name, compare all components of the namespace. " +
			"With --revision the running operator compares two revisions. The exit code is 1 if there are differences, and 2 if an object could not be read.",
		Example:           "  corbel diff shop/corner\n  corbel diff shop/corner --revision 3..5",
		ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			if !c.Flags().Changed("revision") {
				return f.diff(c.Context(), s, o)
			}
			if !s.isOne() {
				return usage("--revision needs the name of a component")
			}
			return f.diffRevisions(c.Context(), s.arguments, revisions, o)
		},
	}
	o = addOutputFlag(command)
	s = addScope(command, "compare")
	command.Flags().StringVar(&revisions, "revision", "", "compare two revisions, such as 3..5")
	return command
}

func (f *frame) diff(ctx context.Context, s *scope, o *output) error {
	unread, different, total := false, 0, 0
	list := diffList{outputOf("DiffList"), []diffOutput{}}
	failure := f.eachSet(ctx, s, func(c inspect.Component, dependents []inspect.Dependent, lost error) {
		total++
		unread = f.warnUnread(dependents) || lost != nil || unread
		out := diffOf(c, dependents)
		if out.differs() {
			different++
		}
		if out.differs() || s.isOne() {
			list.Items = append(list.Items, out)
		}
	})
	if failure != nil && total == 0 {
		return failure
	}
	var err error
	switch {
	case !o.isText() && s.isOne():
		err = f.encode(o.format, list.Items[0])
	case !o.isText():
		err = f.encode(o.format, list)
	default:
		err = f.printDiffs(list.Items, s)
	}
	if !s.isOne() && total > 0 {
		fmt.Fprintf(f.ErrOut, "Differences in %d of %s\n", different, count(total, "component", "components"))
	}
	switch {
	case failure != nil || err != nil:
		return errors.Join(failure, err)
	case unread:
		return &ExitError{Code: CodeTrouble} // not everything was compared; the warnings say so
	case different > 0:
		return errNotSo
	}
	return nil
}

func diffOf(c inspect.Component, dependents []inspect.Dependent) diffOutput {
	out := diffOutput{typeMeta: outputOf("Diff"), Component: referenceTo(c), Items: []dependentSummary{}, of: c}
	for _, d := range dependents {
		if len(d.Changes) > 0 || d.State == inspect.StateMissing {
			out.different = append(out.different, d)
			out.Items = append(out.Items, summaryOfDependent(d))
		}
	}
	if drifted := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionDrifted); drifted != nil && drifted.Status == metav1.ConditionTrue {
		out.Reported = drifted.Message
	}
	return out
}

func (o diffOutput) differs() bool { return len(o.Items) > 0 || o.Reported != "" }

// warnUnread prints which dependents could not be read, and reports whether there are any.
func (f *frame) warnUnread(dependents []inspect.Dependent) bool {
	var unread []string
	for _, d := range dependents {
		if d.State == inspect.StateForbidden || d.State == inspect.StateRemote {
			unread = append(unread, d.String()+": "+d.Message)
		}
	}
	if len(unread) > 0 {
		f.warn(errors.New(strings.Join(unread, "; ")))
	}
	return len(unread) > 0
}

func (f *frame) printDiffs(all []diffOutput, s *scope) error {
	var lines [][]cell
	for _, d := range all {
		if !s.isOne() {
			lines = append(lines, []cell{{text: d.of.String(), whole: true}})
		}
		lines = append(lines, d.lines(f.now())...)
	}
	return f.rows(lines)
}

func (o diffOutput) lines(now time.Time) (lines [][]cell) {
	line := func(text string) { lines = append(lines, []cell{{text: text, whole: true}}) }
	for _, d := range o.different {
		if d.State == inspect.StateMissing {
			lines = append(lines, []cell{{text: "- " + d.String() + ": " + d.Message, color: color.FgRed, whole: true}})
			continue
		}
		for _, change := range d.Changes {
			line(fmt.Sprintf("~ %s: set by %s %s ago", d, change.Manager, age(change.At.Time, now)))
			for _, field := range change.Fields {
				lines = append(lines, []cell{plain("    " + field.Path), colored(cmp.Or(field.Value, "(removed)"), color.FgYellow)})
			}
		}
	}
	if o.Reported != "" {
		line("The operator reports, and leaves as they are: " + o.Reported)
	}
	return lines
}
