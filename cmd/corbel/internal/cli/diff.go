// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// diffOutput is what diff prints as JSON and YAML.
type diffOutput struct {
	typeMeta `json:",inline"`
	// Items are the dependents that are not as they were applied.
	Items []dependentSummary `json:"items"`
	// Reported is what the operator says about objects that it leaves as they are.
	Reported string `json:"reported,omitempty"`
}

func (f *frame) diffCommand() *cobra.Command {
	var o *output
	var revisions string
	command := &cobra.Command{
		Use: "diff " + componentUse, Short: "Show what other clients changed of the dependents of a component",
		Long: "Show which dependents of a component are missing, and which fields of them other clients set, by the field manager and the time in " +
			"their managed fields. A field that another client added counts, too; one that it removed leaves no trace. Changes of Kubernetes' own " +
			"controllers, of the status and of the scale do not count. With --revision the running operator compares what it applied. The exit code is 0 without differences, 1 with some, and 2 after an error.",
		Example: "  corbel diff shop/corner\n  corbel diff shop/corner --revision 3..5",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return answering(err)
			}
			if c.Flags().Changed("revision") {
				return answering(f.diffRevisions(c.Context(), arguments, revisions, o))
			}
			return answering(f.diff(c.Context(), arguments, o))
		},
	}
	o = addOutputFlag(command)
	command.Flags().StringVar(&revisions, "revision", "", "compare two revisions, such as 3..5")
	return command
}

func (f *frame) diff(ctx context.Context, arguments []string, o *output) error {
	c, dependents, lost, err := f.dependents(ctx, arguments)
	if err != nil {
		return err
	}
	unread := f.warnUnread(dependents)
	var different []inspect.Dependent
	for _, d := range dependents {
		if len(d.Changes) > 0 || d.State == inspect.StateMissing {
			different = append(different, d)
		}
	}
	reported := ""
	if drifted := apimeta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionDrifted); drifted != nil && drifted.Status == metav1.ConditionTrue {
		reported = drifted.Message
	}
	if o.isText() {
		err = f.printDiff(different, reported)
	} else {
		out := diffOutput{typeMeta: outputOf("Diff"), Items: []dependentSummary{}, Reported: reported}
		for _, d := range different {
			out.Items = append(out.Items, summaryOfDependent(d))
		}
		err = f.encode(o.format, out)
	}
	switch {
	case err != nil:
		return err
	case lost != nil, unread:
		return &ExitError{Code: CodeTrouble} // not everything was compared; the warnings say so
	case len(different) > 0 || reported != "":
		return errNotSo
	}
	return nil
}

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

func (f *frame) printDiff(different []inspect.Dependent, reported string) error {
	var lines [][]cell
	line := func(text string) { lines = append(lines, []cell{{text: text, whole: true}}) }
	for _, d := range different {
		if d.State == inspect.StateMissing {
			lines = append(lines, []cell{{text: "- " + d.String() + ": " + d.Message, color: color.FgRed, whole: true}})
			continue
		}
		for _, change := range d.Changes {
			line(fmt.Sprintf("~ %s: set by %s %s ago", d, change.Manager, age(change.At.Time, f.now())))
			for _, field := range change.Fields {
				lines = append(lines, []cell{plain("    " + field.Path), colored(cmp.Or(field.Value, "(removed)"), color.FgYellow)})
			}
		}
	}
	if reported != "" {
		line("The operator reports, and leaves as they are: " + reported)
	}
	return f.rows(lines)
}
