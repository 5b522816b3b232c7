// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
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

func (f *frame) historyCommand() *cobra.Command {
	var o *output
	command := &cobra.Command{
		Use: "history " + componentUse, Short: "List the revisions of a component",
		Long:    "List the revisions of a component that its status keeps, the latest last: what became of each, and who changed the component.",
		Example: "  corbel history shop/corner",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.history(c.Context(), arguments, o)
		},
	}
	o = addOutputFlag(command)
	return command
}

func (f *frame) history(ctx context.Context, arguments []string, o *output) error {
	c, err := f.component(ctx, arguments)
	if err != nil {
		return err
	}
	f.warn(c.Mistake)
	revisions := slices.Clone(c.Status.History)
	slices.Reverse(revisions)
	if !o.isText() {
		return f.encode(o.format, historyOutput{outputOf("History"), summaryOf(c), append([]v1alpha1.RevisionStatus{}, revisions...), c.Status.Rollback})
	}
	if len(revisions) == 0 {
		fmt.Fprintf(f.ErrOut, "%s has no history yet.\n", c)
		return nil
	}
	var rows [][]cell
	for _, revision := range revisions {
		readyAfter := ""
		if revision.ReadyAt != nil {
			readyAfter = duration.HumanDuration(revision.ReadyAt.Sub(revision.AppliedAt.Time))
		}
		rows = append(rows, []cell{
			plain(fmt.Sprint(revision.Revision)), plain(string(revision.Result)), plain(age(revision.AppliedAt.Time, f.now()) + " ago"), plain(readyAfter),
			plain(revision.ChangedBy), plain(inspect.SourceText(revision.Source)), plain(c.RevisionNote(revision)),
		})
	}
	return f.table("REVISION", "RESULT", "STARTED", "READY AFTER", "CHANGED BY", "SOURCE", "NOTE").print(rows)
}
