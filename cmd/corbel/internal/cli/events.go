// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// eventList is what events prints as JSON and YAML.
type eventList struct {
	typeMeta `json:",inline"`
	Items    []eventSummary `json:"items"`
}

// eventSummary is an event in JSON and YAML.
type eventSummary struct {
	Last    metav1.Time `json:"last"`
	Count   int32       `json:"count"`
	Type    string      `json:"type"`
	Reason  string      `json:"reason"`
	Object  string      `json:"object"`
	Message string      `json:"message"`
}

func (f *frame) eventsCommand() *cobra.Command {
	var o *output
	command := &cobra.Command{
		Use: "events " + componentUse, Short: "List the events about a component, its dependents and their pods",
		Example: "  corbel events shop/corner",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.events(c.Context(), arguments, o)
		},
	}
	o = addOutputFlag(command)
	return command
}

func (f *frame) events(ctx context.Context, arguments []string, o *output) error {
	c, dependents, _, err := f.dependents(ctx, arguments)
	if err != nil {
		return err
	}
	reader, err := f.reader()
	if err != nil {
		return err
	}
	events, refused := reader.Events(ctx, c, dependents)
	if refused != nil && len(events) == 0 {
		return refused
	}
	f.warn(refused)
	list := eventList{typeMeta: outputOf("EventList"), Items: []eventSummary{}}
	table := f.table("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
	var rows [][]cell
	for _, e := range events {
		list.Items = append(list.Items, eventSummary{metav1.NewTime(e.Last), e.Count, e.Type, e.Reason, e.Object, e.Message})
		last, kind := age(e.Last, f.now()), plain(e.Type)
		if e.Count > 1 {
			last += fmt.Sprintf(" (x%d)", e.Count)
		}
		if e.Type != "Normal" {
			kind.color = color.FgYellow
		}
		rows = append(rows, []cell{plain(last), kind, plain(e.Reason), plain(e.Object), plain(oneLine(e.Message))})
	}
	switch {
	case !o.isText():
		return f.encode(o.format, list)
	case len(rows) == 0:
		fmt.Fprintf(f.ErrOut, "No events found for %s.\n", c)
	}
	return table.print(rows)
}
