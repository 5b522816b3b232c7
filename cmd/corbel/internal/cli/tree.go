// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fatih/color"
	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
)

// treeOutput is a tree in JSON and YAML.
type treeOutput struct {
	typeMeta   `json:",inline"`
	Component  componentSummary   `json:"component"`
	Dependents []dependentSummary `json:"dependents"`
	Requires   []dependentSummary `json:"requires,omitempty"`
	// Outputs are null if they are secret.
	Outputs map[string]*string `json:"outputs,omitempty"`
	// Lost says which part of the inventory cannot be read.
	Lost string `json:"lost,omitempty"`
}

// dependentSummary is a dependent in JSON and YAML.
type dependentSummary struct {
	metav1.TypeMeta `json:",inline"`
	Namespace       string           `json:"namespace,omitempty"`
	Name            string           `json:"name"`
	UID             types.UID        `json:"uid,omitempty"`
	Stage           inspect.Stage    `json:"stage"`
	State           inspect.State    `json:"state"`
	Message         string           `json:"message,omitempty"`
	DependsOn       []string         `json:"dependsOn,omitempty"`
	Changes         []inspect.Change `json:"changes,omitempty"`
	Pods            []podSummary     `json:"pods,omitempty"`
}

// podSummary is a pod of a workload in JSON and YAML.
type podSummary struct {
	Name    string `json:"name"`
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
}

// tree shows a component with its dependents.
type tree struct {
	*frame
	output *output
	pods   bool
	watch  bool
}

func (f *frame) treeCommand() *cobra.Command {
	t := &tree{frame: f}
	command := &cobra.Command{
		Use: "tree " + componentUse, Short: "Show a component with its dependents in the order in which they are applied",
		Long:    "Show a component with its dependents, in the order of their application, from its inventory. Requirements of the component come first, and outputs last.",
		Example: "  corbel tree shop/corner --pods\n  corbel tree shop/corner -w",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error { return t.run(c.Context(), arguments) },
	}
	t.output = addOutputFlag(command, "dot")
	command.Flags().BoolVar(&t.pods, "pods", false, "show the pods of workloads")
	command.Flags().BoolVarP(&t.watch, "watch", "w", false, "show the tree again after each change until Ctrl-C")
	return command
}

func (t *tree) run(ctx context.Context, arguments []string) error {
	if err := t.output.check(); err != nil {
		return err
	}
	if t.watch && t.output.format != "" {
		return usage("--watch prints text only: leave out -o %s", t.output.format)
	}
	view, err := t.view(ctx, arguments)
	if err != nil {
		return err
	}
	switch t.output.format {
	case "json", "yaml":
		return t.encode(t.output.format, view.output())
	case "dot":
		_, err := t.Out.Write(view.dot())
		return err
	}
	if err := t.print(view); err != nil || !t.watch {
		return err
	}
	return t.follow(ctx, arguments, view)
}

// interval is how often a tree is read again.
const interval = 2 * time.Second

// follow prints the tree whenever it differs from what was printed before, until the component is gone.
func (t *tree) follow(ctx context.Context, arguments []string, view treeView) error {
	before := view.lines(t.now().Truncate(time.Hour))
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticks.C:
		}
		view, err := t.view(ctx, arguments)
		if apierrors.IsNotFound(err) {
			fmt.Fprintln(t.ErrOut, "the component is gone")
			return nil
		}
		if err != nil {
			return err
		}
		now := view.lines(t.now().Truncate(time.Hour))
		if slices.EqualFunc(before, now, func(a, b []cell) bool { return slices.Equal(a, b) }) {
			continue
		}
		before = now
		if t.colors() { // a terminal that can be cleared
			fmt.Fprint(t.Out, "\x1b[H\x1b[2J")
		} else {
			fmt.Fprintln(t.Out)
		}
		if err := t.print(view); err != nil {
			return err
		}
	}
}

// treeView is a tree at a moment.
type treeView struct {
	component  inspect.Component
	dependents []inspect.Dependent
	requires   []inspect.Dependent // of a stage of their own
	pods       map[types.UID][]*unstructured.Unstructured
	lost       error
}

func (t *tree) view(ctx context.Context, arguments []string) (treeView, error) {
	var v treeView
	var err error
	if v.component, v.dependents, v.lost, err = t.dependents(ctx, arguments); err != nil {
		return v, err
	}
	for _, r := range why.Requirements(v.component.Object) {
		item := v1alpha1.InventoryItem{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
		d := inspect.Dependent{Item: item, Object: &unstructured.Unstructured{}, Stage: inspect.Stage{Title: "requires"}, State: inspect.StateReady, Message: why.Collector{Reader: t.connection.client}.Lack(ctx, r)}
		if d.Message != "" {
			d.State = inspect.StateNotReady
		}
		v.requires = append(v.requires, d)
	}
	if !t.pods {
		return v, nil
	}
	reader, err := t.reader()
	if err != nil {
		return v, err
	}
	v.pods, err = reader.Pods(ctx, v.dependents)
	if err != nil && len(v.pods) == 0 && !apierrors.IsForbidden(err) {
		return v, err
	}
	t.warn(err)
	return v, nil
}

// dependents reads a component and its dependents. What is lost of the inventory is no error.
func (f *frame) dependents(ctx context.Context, arguments []string) (c inspect.Component, dependents []inspect.Dependent, lost, err error) {
	if c, err = f.component(ctx, arguments); err == nil {
		dependents, lost, err = f.dependentsOf(ctx, c)
	}
	return c, dependents, lost, err
}

func (f *frame) dependentsOf(ctx context.Context, c inspect.Component) (dependents []inspect.Dependent, lost, err error) {
	reader, err := f.reader()
	if err != nil {
		return nil, nil, err
	}
	dependents, lost = reader.Dependents(ctx, c)
	if lost != nil && !inspect.IsLost(lost) && c.Mistake == nil {
		return nil, nil, lost
	}
	f.warn(lost)
	return dependents, lost, nil
}

// warn prints what does not end a command.
func (f *frame) warn(err error) {
	if err != nil {
		fmt.Fprintln(f.ErrOut, "warning:", oneLine(strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
}

func (t *tree) print(v treeView) error { return t.rows(v.lines(t.now())) }

// rows prints lines with aligned columns and no header.
func (f *frame) rows(rows [][]cell) error {
	widest := 0
	for _, row := range rows {
		widest = max(widest, len(row))
	}
	table := f.table(make([]string, widest)...)
	table.header = nil
	for i := range rows {
		for len(rows[i]) < widest {
			rows[i] = append(rows[i], cell{})
		}
	}
	return table.print(rows)
}

// lines are the lines of the tree.
func (v treeView) lines(now time.Time) [][]cell {
	c := v.component
	head := []cell{{text: c.String(), whole: true}, {}, colored(string(cmp.Or(c.Status.State, "not reconciled yet")), stateColor(c)), plain(headDetail(c, now))}
	lines := [][]cell{head}
	if c.Mistake == nil && !c.Status.IsReady() {
		if message := c.Ready().Message; message != "" {
			lines = append(lines, []cell{{text: "│  " + message, whole: true}})
		}
	}
	var outputs []string
	for _, name := range slices.Sorted(maps.Keys(c.Status.Outputs)) {
		outputs = append(outputs, name+": "+c.Status.Outputs[name])
	}
	for _, name := range c.Status.SecretOutputs {
		outputs = append(outputs, name+" (secret)")
	}
	all := slices.Concat(v.requires, v.dependents)
	for i := 0; i < len(all); {
		end := i
		for end < len(all) && all[end].Stage == all[i].Stage {
			end++
		}
		last := end == len(all) && len(outputs) == 0
		lines = append(lines, []cell{{text: branch("", last) + all[i].Stage.Title, whole: true}})
		for j := i; j < end; j++ {
			lines = append(lines, v.dependentLines(all[j], trunk("", last), j == end-1, now)...)
		}
		i = end
	}
	for i, output := range outputs {
		if i == 0 {
			lines = append(lines, []cell{{text: branch("", true) + "outputs", whole: true}})
		}
		lines = append(lines, []cell{{text: branch(trunk("", true), i == len(outputs)-1) + output, whole: true}})
	}
	return lines
}

// headDetail says more about a component than its state.
func headDetail(c inspect.Component, now time.Time) string {
	var parts []string
	if c.Status.Progress != "" {
		parts = append(parts, c.Status.Progress)
	}
	if c.Status.Revision > 0 {
		parts = append(parts, fmt.Sprintf("revision %d", c.Status.Revision))
	}
	if deleted := c.Object.GetDeletionTimestamp(); deleted != nil {
		parts = append(parts, "is being deleted since "+age(deleted.Time, now))
	}
	return strings.Join(append(parts, "age "+age(c.Object.GetCreationTimestamp().Time, now)), ", ")
}

func (v treeView) dependentLines(d inspect.Dependent, before string, last bool, now time.Time) [][]cell {
	name := d.Item.Name
	if d.Item.Namespace != v.component.Object.GetNamespace() && d.Item.Namespace != "" {
		name = d.Item.Namespace + "/" + name
	}
	detail := d.Message
	if d.State == inspect.StateReady {
		detail = inspect.Replicas(d.Object)
	}
	for _, change := range d.Changes {
		detail = strings.TrimPrefix(detail+"; "+changeText(change, now), "; ")
	}
	lines := [][]cell{{plain(branch(before, last) + d.Item.Kind), plain(name), colored(string(d.State), dependentColor(d.State)), plain(detail)}}
	if d.Object == nil {
		return lines
	}
	pods := v.pods[d.Object.GetUID()]
	for i, pod := range pods {
		state, message := inspect.PodState(pod)
		lines = append(lines, []cell{
			plain(branch(trunk(before, last), i == len(pods)-1) + "Pod"), plain(pod.GetName()), plain(state), plain(message),
		})
	}
	return lines
}

// changeText says what another client set, in a few words.
func changeText(change inspect.Change, now time.Time) string {
	fields := change.Fields[0].Path
	if more := len(change.Fields) - 1; more > 0 {
		fields += " and " + count(more, "more field", "more fields")
	}
	return fmt.Sprintf("%s set %s %s ago", change.Manager, fields, age(change.At.Time, now))
}

func branch(before string, last bool) string {
	if last {
		return before + "└─ "
	}
	return before + "├─ "
}

func trunk(before string, last bool) string {
	if last {
		return before + "   "
	}
	return before + "│  "
}

func dependentColor(state inspect.State) color.Attribute {
	switch state {
	case inspect.StateReady, inspect.StateCompleted:
		return color.FgGreen
	case inspect.StateFailed, inspect.StateMissing:
		return color.FgRed
	}
	return color.FgYellow
}

func (v treeView) output() treeOutput {
	out := treeOutput{typeMeta: outputOf("Tree"), Component: summaryOf(v.component), Dependents: []dependentSummary{}, Outputs: outputsOf(v.component)}
	if v.lost != nil {
		out.Lost = v.lost.Error()
	}
	for _, d := range v.requires {
		out.Requires = append(out.Requires, summaryOfDependent(d))
	}
	for _, d := range v.dependents {
		s := summaryOfDependent(d)
		if d.Object != nil {
			for _, pod := range v.pods[d.Object.GetUID()] {
				state, message := inspect.PodState(pod)
				s.Pods = append(s.Pods, podSummary{pod.GetName(), state, message})
			}
		}
		out.Dependents = append(out.Dependents, s)
	}
	return out
}

func summaryOfDependent(d inspect.Dependent) dependentSummary {
	s := dependentSummary{
		TypeMeta:  metav1.TypeMeta{APIVersion: strings.TrimPrefix(d.Item.Group+"/"+d.Item.Version, "/"), Kind: d.Item.Kind},
		Namespace: d.Item.Namespace, Name: d.Item.Name, UID: d.Item.UID, Stage: d.Stage, State: d.State, Message: d.Message,
		DependsOn: d.Item.DependsOn, Changes: d.Changes,
	}
	if d.Object != nil {
		s.UID = d.Object.GetUID()
	}
	return s
}

// dot is the tree as a graph for Graphviz: an edge leads from the component to each dependent, and a dashed one to what a
// dependent depends on.
func (v treeView) dot() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "digraph {\n\trankdir=LR\n\tnode [shape=box]\n\tcomponent [label=%q]\n", v.component.String()+"\n"+string(v.component.Status.State))
	nodes := map[string]string{}
	for i, d := range v.dependents {
		nodes[strings.Join([]string{d.Item.Group, d.Item.Kind, d.Item.Namespace, d.Item.Name}, "/")] = fmt.Sprintf("d%d", i)
		fmt.Fprintf(&out, "\td%d [label=%q]\n\tcomponent -> d%d [label=%q]\n", i, d.String()+"\n"+string(d.State), i, d.Stage.Title)
		if d.Object == nil {
			continue
		}
		for j, pod := range v.pods[d.Object.GetUID()] {
			state, _ := inspect.PodState(pod)
			fmt.Fprintf(&out, "\td%dp%d [label=%q]\n\td%d -> d%dp%d\n", i, j, "Pod "+pod.GetName()+"\n"+state, i, i, j)
		}
	}
	for i, d := range v.dependents {
		for _, on := range d.Item.DependsOn {
			if node, ok := nodes[on]; ok {
				fmt.Fprintf(&out, "\td%d -> %s [style=dashed]\n", i, node)
			}
		}
	}
	out.WriteString("}\n")
	return out.Bytes()
}

// errNotSo makes a command end with code 1 and no further text.
var errNotSo = &ExitError{Code: CodeNo}
