// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// historyOutput is what history prints as JSON and YAML.
type historyOutput struct {
	typeMeta  `json:",inline"`
	Component componentSummary          `json:"component"`
	Items     []v1alpha1.RevisionStatus `json:"items"`
	Rollback  *v1alpha1.Rollback        `json:"rollback,omitempty"`
}

// historyList is what history prints of several components as JSON and YAML.
type historyList struct {
	typeMeta `json:",inline"`
	Items    []historyOutput `json:"items"`
}

func (f *frame) historyCommand() *cobra.Command {
	var o *output
	var s *scope
	command := &cobra.Command{
		Use: "history [" + componentUse + "]", Short: "List the revisions of components",
		Long: "List the revisions in the status of a component, the latest last, with their results and authors. " +
			"Without a name, list those of all components of the namespace.",
		Example:           "  corbel history shop/corner",
		ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.history(c.Context(), s, o)
		},
	}
	o = addOutputFlag(command)
	s = addScope(command, "list the revisions of")
	return command
}

func (f *frame) history(ctx context.Context, s *scope, o *output) error {
	var components []inspect.Component
	var failure error
	if s.isOne() {
		c, err := f.component(ctx, s.arguments)
		if err != nil {
			return err
		}
		components = append(components, c)
	} else if components, failure = f.listed(ctx, s); len(components) == 0 {
		return failure
	}
	type entry struct {
		v1alpha1.RevisionStatus
		of inspect.Component
	}
	var entries []entry
	list := historyList{outputOf("HistoryList"), []historyOutput{}}
	for _, c := range components {
		f.warn(c.Mistake)
		out := historyOutput{outputOf("History"), summaryOf(c), []v1alpha1.RevisionStatus{}, c.Status.Rollback}
		for _, revision := range slices.Backward(c.Status.History) {
			out.Items = append(out.Items, revision)
			entries = append(entries, entry{revision, c})
		}
		list.Items = append(list.Items, out)
	}
	switch {
	case !o.isText() && s.isOne():
		return f.encode(o.format, list.Items[0])
	case !o.isText():
		return errors.Join(failure, f.encode(o.format, list))
	case len(entries) == 0:
		fmt.Fprintln(f.ErrOut, "No history yet")
		return failure
	}
	if !s.isOne() {
		slices.SortStableFunc(entries, func(a, b entry) int { return a.AppliedAt.Compare(b.AppliedAt.Time) })
	}
	var rows [][]cell
	for _, e := range entries {
		readyAfter := ""
		if e.ReadyAt != nil {
			readyAfter = duration.HumanDuration(e.ReadyAt.Sub(e.AppliedAt.Time))
		}
		rows = append(rows, []cell{
			plain(e.of.String()), plain(fmt.Sprint(e.Revision)), plain(string(e.Result)), plain(age(e.AppliedAt.Time, f.now()) + " ago"), plain(readyAfter),
			plain(e.ChangedBy), plain(inspect.SourceText(e.Source)), plain(e.of.RevisionNote(e.RevisionStatus)),
		})
	}
	table := f.table("COMPONENT", "REVISION", "RESULT", "STARTED", "READY AFTER", "CHANGED BY", "SOURCE", "NOTE")
	table.optional, table.left[0] = []string{"READY AFTER", "SOURCE", "CHANGED BY"}, s.isOne()
	return errors.Join(failure, table.print(rows))
}
