// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
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
	var s *scope
	command := &cobra.Command{
		Use: "events [" + componentUse + "]", Short: "List the events about components, their dependents and their pods",
		Long: "List the events about a component, its dependents and their pods, the latest last. " +
			"Without a name, list those of all components of the namespace.",
		Example:           "  corbel events shop/corner",
		ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.events(c.Context(), s, o)
		},
	}
	o = addOutputFlag(command)
	s = addScope(command, "list the events about")
	return command
}

func (f *frame) events(ctx context.Context, s *scope, o *output) error {
	var components []inspect.Component
	var dependents []inspect.Dependent
	failure := f.eachSet(ctx, s, func(c inspect.Component, of []inspect.Dependent, _ error) {
		components, dependents = append(components, c), append(dependents, of...)
	})
	if len(components) == 0 {
		return failure
	}
	reader, err := f.reader()
	if err != nil {
		return err
	}
	events, refused := reader.EventsOf(ctx, components, dependents)
	if refused != nil && len(events) == 0 {
		return errors.Join(failure, refused)
	}
	f.warn(refused)
	list := eventList{typeMeta: outputOf("EventList"), Items: []eventSummary{}}
	table := f.table("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE")
	table.optional, table.cut = []string{"TYPE", "LAST SEEN"}, map[string]int{"REASON": 14, "OBJECT": 26}
	if width := table.width; width > 0 && width < 60 { // the object is in the message of most events
		table.optional = append(table.optional, "OBJECT")
	}
	var rows [][]cell
	for _, e := range events {
		list.Items = append(list.Items, eventSummary{metav1.NewTime(e.Last), e.Count, e.Type, e.Reason, e.Object, e.Message})
		last, kind, reason := age(e.Last, f.now()), plain(e.Type), plain(e.Reason)
		if e.Count > 1 {
			last += fmt.Sprintf(" (x%d)", e.Count)
		}
		if e.Type != "Normal" {
			kind.color, reason.color = color.FgYellow, color.FgYellow
		}
		rows = append(rows, []cell{plain(last), kind, reason, plain(e.Object), plain(oneLine(e.Message))})
	}
	switch {
	case !o.isText():
		return errors.Join(failure, f.encode(o.format, list))
	case len(rows) == 0:
		fmt.Fprintln(f.ErrOut, "No events found")
	}
	return errors.Join(failure, table.print(rows))
}
