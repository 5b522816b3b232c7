// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// componentSummary is a component in JSON and YAML.
type componentSummary struct {
	typeMeta         `json:",inline"`
	Type             metav1.TypeMeta    `json:"type"`
	Namespace        string             `json:"namespace,omitempty"`
	Name             string             `json:"name"`
	UID              types.UID          `json:"uid"`
	Reconciler       string             `json:"reconciler,omitempty"`
	Created          metav1.Time        `json:"created"`
	Deleting         *metav1.Time       `json:"deleting,omitempty"`
	Generation       int64              `json:"generation"`
	Observed         int64              `json:"observedGeneration"`
	State            v1alpha1.State     `json:"state,omitempty"`
	Ready            string             `json:"ready"`
	Reason           string             `json:"reason,omitempty"`
	Message          string             `json:"message,omitempty"`
	Progress         string             `json:"progress,omitempty"`
	Revision         int64              `json:"revision,omitempty"`
	Conditions       []metav1.Condition `json:"conditions,omitempty"`
	UnreadableStatus string             `json:"unreadableStatus,omitempty"`
}

func summaryOf(c inspect.Component) componentSummary {
	ready := c.Ready()
	s := componentSummary{
		typeMeta: outputOf("Component"), Type: metav1.TypeMeta{APIVersion: c.Type.GroupVersion().String(), Kind: c.Type.Kind},
		Namespace: c.Object.GetNamespace(), Name: c.Object.GetName(), UID: c.Object.GetUID(), Reconciler: c.Reconciler,
		Created: c.Object.GetCreationTimestamp(), Deleting: c.Object.GetDeletionTimestamp(),
		Generation: c.Object.GetGeneration(), Observed: c.Status.ObservedGeneration, State: c.Status.State,
		Ready: cmp.Or(string(ready.Status), "Unknown"), Reason: ready.Reason, Message: ready.Message,
		Progress: c.Status.Progress, Revision: c.Status.Revision, Conditions: c.Status.Conditions,
	}
	if c.Mistake != nil {
		s.UnreadableStatus = c.Mistake.Error()
	}
	return s
}

// componentList is what get prints as JSON and YAML.
type componentList struct {
	typeMeta `json:",inline"`
	Items    []componentSummary `json:"items"`
}

// get lists components.
type get struct {
	*frame
	output        *output
	allNamespaces bool
	watch         bool
	selector      string

	table *table
	mu    sync.Mutex // guards what is printed by several watches
}

func (f *frame) getCommand() *cobra.Command {
	g := &get{frame: f}
	command := &cobra.Command{
		Use:   "get [KIND [NAME] | NAME]",
		Short: "List components of all operators that are built with Corbel",
		Long: "List components of all operators that are built with Corbel, by the category \"corbel\", or of one kind. " +
			"Name a kind by its plural, singular or short name, with or without the group. A name alone finds its component.",
		Example:           "  corbel get -A\n  corbel get shops -n market -w",
		ValidArgsFunction: f.completeComponents,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) > 2 {
				return usage("name at most one component: KIND, KIND NAME or KIND/NAME; got %q", arguments)
			}
			return nil
		},
		RunE: func(c *cobra.Command, arguments []string) error { return g.run(c.Context(), arguments) },
	}
	g.output = addOutputFlag(command, "wide", "name")
	command.Flags().BoolVarP(&g.allNamespaces, "all-namespaces", "A", false, "list components of all namespaces")
	command.Flags().BoolVarP(&g.watch, "watch", "w", false, "after the list, print each change until Ctrl-C")
	command.Flags().StringVarP(&g.selector, "selector", "l", "", "list components with these labels, such as 'tier=web,env!=test'")
	return command
}

func (g *get) run(ctx context.Context, arguments []string) error {
	if err := g.output.check(); err != nil {
		return err
	}
	if g.watch && (g.output.format == "json" || g.output.format == "yaml") {
		return usage("--watch prints text only: leave out -o %s", g.output.format)
	}
	kind, name := "", ""
	switch {
	case len(arguments) == 1 && !strings.Contains(arguments[0], "/"):
		kind = arguments[0]
	case len(arguments) > 0:
		var err error
		if kind, name, err = split(arguments); err != nil {
			return err
		}
	}
	if name != "" && (g.allNamespaces || g.selector != "") {
		return usage("a name cannot be combined with -A or -l")
	}
	selection, err := g.selection()
	if err != nil {
		return err
	}
	reader, err := g.reader()
	if err != nil {
		return err
	}
	if name != "" && !g.watch {
		return g.one(ctx, []string{kind, name})
	}
	selection.Name = name
	var kinds []inspect.Type
	if kind == "" {
		kinds, err = reader.Types()
	} else {
		var t inspect.Type
		t, err = resolve(reader, kind)
		kinds = []inspect.Type{t}
		if _, unknown := errors.AsType[*inspect.UnknownKindError](err); unknown && !g.allNamespaces && g.selector == "" {
			if c, findErr := findByName(ctx, reader, types.NamespacedName{Namespace: selection.Namespace, Name: kind}); findErr == nil {
				if !g.watch {
					return g.show(c)
				}
				kinds, selection.Name, err = []inspect.Type{c.Type}, kind, nil
			}
		}
	}
	if err != nil {
		return err
	}
	return g.list(ctx, reader, kinds, selection)
}

func (g *get) selection() (inspect.Selection, error) {
	var s inspect.Selection
	if g.selector != "" {
		selector, err := labels.Parse(g.selector)
		if err != nil {
			return s, usage("selector %q: %w", g.selector, err)
		}
		s.Selector = selector
	}
	if g.allNamespaces {
		return s, nil
	}
	var err error
	s.Namespace, err = g.namespace()
	return s, err
}

// one prints a single component.
func (g *get) one(ctx context.Context, arguments []string) error {
	c, err := g.component(ctx, arguments)
	if err != nil {
		return err
	}
	return g.show(c)
}

func (g *get) show(c inspect.Component) error {
	switch g.output.format {
	case "json", "yaml":
		return g.encode(g.output.format, summaryOf(c))
	case "name":
		_, err := fmt.Fprintln(g.Out, c.ResourceName())
		return err
	}
	g.table = g.newTable()
	return g.table.print([][]cell{g.row(c)})
}

// list prints the components of types. A type that cannot be listed does not hide the others.
func (g *get) list(ctx context.Context, reader *inspect.Reader, kinds []inspect.Type, selection inspect.Selection) error {
	g.table = g.newTable()
	list := componentList{typeMeta: outputOf("ComponentList"), Items: []componentSummary{}}
	versions, found := make([]string, len(kinds)), 0
	var failures []error
	for i, t := range kinds {
		var rows [][]cell
		of := selection
		if !t.Namespaced {
			of.Namespace = ""
		}
		version, err := reader.List(ctx, t, of, func(c inspect.Component) error {
			found++
			switch g.output.format {
			case "json", "yaml":
				list.Items = append(list.Items, summaryOf(c))
			case "name":
				_, err := fmt.Fprintln(g.Out, c.ResourceName())
				return err
			default:
				if rows = append(rows, g.row(c)); len(rows) >= batch {
					err := g.table.print(rows)
					rows = nil
					return err
				}
			}
			return nil
		})
		if printing := g.table.print(rows); err == nil { // also of a list that fails in the middle
			err = printing
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failures = append(failures, g.withoutNamespace(err))
			continue
		}
		versions[i] = version
	}
	switch {
	case g.output.format == "json" || g.output.format == "yaml":
		if err := g.encode(g.output.format, list); err != nil {
			return err
		}
	case found == 0 && len(failures) == 0 && g.output.format != "name":
		g.nothing(selection.Namespace)
	}
	if g.watch && len(failures) < len(kinds) {
		g.warn(errors.Join(failures...))
		return g.watchAll(ctx, reader, kinds, versions, selection)
	}
	return errors.Join(failures...)
}

// batch is how many rows are aligned at once. More would keep a large fleet in memory.
const batch = 1000

// withoutNamespace adds to a refusal that one namespace may be allowed.
func (g *get) withoutNamespace(err error) error {
	if apierrors.IsForbidden(err) && g.allNamespaces {
		return fmt.Errorf("%w; perhaps one namespace is allowed: leave out -A", err)
	}
	return err
}

// watchAll prints the changes of all types until the context ends.
func (g *get) watchAll(ctx context.Context, reader *inspect.Reader, kinds []inspect.Type, versions []string, selection inspect.Selection) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var running sync.WaitGroup
	for i, t := range kinds {
		if versions[i] == "" {
			continue // it could not be listed
		}
		of := selection
		if !t.Namespaced {
			of.Namespace = ""
		}
		running.Go(func() {
			version := versions[i]
			for {
				err := reader.Watch(ctx, t, of, version, g.changed)
				if !inspect.IsExpired(err) {
					cancel(err)
					return
				}
				version = "" // the server starts with all that is there
			}
		})
	}
	running.Wait()
	return context.Cause(ctx)
}

// changed prints a change.
func (g *get) changed(change inspect.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.output.format == "name" {
		_, err := fmt.Fprintln(g.Out, change.Component.ResourceName())
		return err
	}
	row := g.row(change.Component)
	if change.Deleted {
		row[len(row)-1] = plain("deleted")
	}
	return g.table.print([][]cell{row})
}

func (g *get) newTable() *table {
	header := []string{"KIND", "NAME", "READY", "STATE", "PROGRESS", "REVISION", "AGE", "MESSAGE"}
	if g.output.format == "wide" {
		header = []string{"KIND", "NAME", "READY", "STATE", "REASON", "PROGRESS", "REVISION", "AGE", "RECONCILER", "MESSAGE"}
	}
	if g.allNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	table := g.frame.table(header...)
	table.optional = []string{"REVISION", "AGE", "PROGRESS", "READY", "RECONCILER", "REASON"}
	return table
}

// row is the line of a component.
func (g *get) row(c inspect.Component) []cell {
	ready := c.Ready()
	state, message := c.Summary()
	row := []cell{plain(c.Type.Kind), plain(c.Object.GetName()), colored(string(cmp.Or(ready.Status, metav1.ConditionUnknown)), stateColor(c)), colored(state, stateColor(c))}
	if g.output.format == "wide" {
		row = append(row, plain(ready.Reason))
	}
	row = append(row, plain(c.Status.Progress), plain(revision(c.Status.Revision)), plain(age(c.Object.GetCreationTimestamp().Time, g.now())))
	if g.output.format == "wide" {
		row = append(row, plain(c.Reconciler))
	}
	if row = append(row, plain(message)); g.allNamespaces {
		row = append([]cell{plain(c.Object.GetNamespace())}, row...)
	}
	return row
}

func revision(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// stateColor is green for what is good, red for what is bad, and yellow in between.
func stateColor(c inspect.Component) color.Attribute {
	switch c.Status.State {
	case v1alpha1.StateReady:
		return color.FgGreen
	case v1alpha1.StateError:
		return color.FgRed
	}
	return color.FgYellow
}
