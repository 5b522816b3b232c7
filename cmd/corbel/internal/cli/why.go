// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// explanation is why a component is not ready, in JSON and YAML.
type explanation struct {
	typeMeta  `json:",inline"`
	why.Chain `json:",inline"`
}

// explanationList are explanations in JSON and YAML.
type explanationList struct {
	typeMeta `json:",inline"`
	Items    []sameCause `json:"items"`
}

// sameCause is why some components are not ready: the chain is that of the first.
type sameCause struct {
	why.Chain `json:",inline"`
	// Same are the names of further components with the same cause.
	Same []string `json:"same,omitempty"`
}

// maxExplained is how many causes are explained if no component is named.
const maxExplained = 10

func (f *frame) whyCommand() *cobra.Command {
	var o *output
	var s *scope
	command := &cobra.Command{
		Use:   "why [" + componentUse + "]",
		Short: "Say why a component is not Ready, and what to do",
		Long: "Say why a component is not Ready: the object that is the cause, the field, the time, the objects that wait for it, and the next command. " +
			"Without a name, explain the components of the namespace that are not Ready: errors first, then the longest waits. At most 10 causes are explained.\n\n" +
			"The command sends at most 10 requests for a component, without those of discovery, and reads no log.\n\n" +
			"The exit code is 0 if the component is Ready, 1 if it is not, and 2 after an error.",
		Example:           "  corbel why -A\n  corbel why shop/corner -n market",
		ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.why(c.Context(), s, o)
		},
	}
	o = addOutputFlag(command)
	s = addScope(command, "explain")
	return command
}

func (f *frame) why(ctx context.Context, s *scope, o *output) error {
	connection, err := f.connect()
	if err != nil {
		return err
	}
	collector := why.Collector{Reader: connection.client}
	explain := func(c inspect.Component) (why.Chain, error) {
		if c.Mistake != nil {
			return why.Chain{}, c.Mistake
		}
		return collector.Explain(ctx, why.Facts{Object: c.Object, Status: c.Status, Reconciler: c.Reconciler}, f.now)
	}
	if !s.isOne() {
		return f.whyAll(ctx, s, explain, o)
	}
	found, err := f.component(ctx, s.arguments)
	if err != nil {
		return err
	}
	chain, err := explain(found)
	if err != nil {
		return err
	}
	if o.isText() {
		_, err = fmt.Fprint(f.Out, chain.Text(f.now()))
	} else {
		err = f.encode(o.format, explanation{outputOf("Explanation"), chain})
	}
	if err == nil && !chain.Ready {
		err = &ExitError{Code: CodeNo}
	}
	return err
}

// likeness groups components with equal conditions. The names in the messages may differ.
type likeness struct {
	kind     inspect.Type
	severity int
	since    time.Time // of the first name
	names    []client.ObjectKey
}

// severityOf orders components: errors come before those that no operator has seen, these before those that wait, and suspended ones last.
func severityOf(c inspect.Component) int {
	switch ready := c.Ready(); {
	case ready.Status == metav1.ConditionFalse && ready.Reason != vocabulary.ReasonDeletionProcessing || c.Mistake != nil:
		return 0
	case ready.Status == "":
		return 1
	case c.Status.State == v1alpha1.StateSuspended:
		return 3
	}
	return 2
}

// varying are the parts of a message that differ between components with the same cause, beside their names.
var varying = regexp.MustCompile(`(?i)\bpod \S+|, \d+ restarts?| \(and \d+ more\)`)

// alike is a text without what differs between components with the same cause.
func alike(name client.ObjectKey, text string) string {
	for _, part := range []string{name.Namespace, name.Name} {
		if part != "" {
			text = regexp.MustCompile(`\b`+regexp.QuoteMeta(part)+`\b`).ReplaceAllString(text, "*")
		}
	}
	return varying.ReplaceAllString(text, "")
}

// unready returns the components that are not Ready, the worst first.
func unready(components []inspect.Component) (all []*likeness) {
	found := map[string]*likeness{}
	for _, c := range components {
		ready, name := c.Ready(), client.ObjectKeyFromObject(c.Object)
		if ready.Status == metav1.ConditionTrue && c.Status.ObservedGeneration == c.Object.GetGeneration() {
			continue
		}
		state, message := c.Summary()
		key := strings.Join([]string{c.Type.String(), state, ready.Reason, alike(name, message)}, "|")
		since := cmp.Or(ready.LastTransitionTime, c.Object.GetCreationTimestamp()).Time
		l := found[key]
		if l == nil {
			l = &likeness{kind: c.Type, severity: severityOf(c), since: since}
			found[key], all = l, append(all, l)
		}
		l.names = append(l.names, name)
		if last := len(l.names) - 1; since.Before(l.since) {
			l.since, l.names[0], l.names[last] = since, name, l.names[0]
		}
	}
	slices.SortStableFunc(all, func(a, b *likeness) int { return cmp.Or(a.severity-b.severity, a.since.Compare(b.since)) })
	return all
}

// whyAll explains the components of the namespace, or of all, that are not Ready. What cannot be read does not hide the rest.
func (f *frame) whyAll(ctx context.Context, s *scope, explain func(inspect.Component) (why.Chain, error), o *output) error {
	components, failures := f.listed(ctx, s)
	if failures != nil && len(components) == 0 {
		return failures
	}
	reader, err := f.reader()
	if err != nil {
		return err
	}
	place := ""
	if !s.allNamespaces {
		namespace, _ := f.namespace() // the list needs it, too
		place = " in namespace " + namespace
	}
	list, positions := explanationList{typeMeta: outputOf("ExplanationList"), Items: []sameCause{}}, map[string]int{}
	all, explained, notReady := unready(components), 0, 0
	for i, l := range all {
		notReady += len(l.names)
		if i >= maxExplained || ctx.Err() != nil {
			continue
		}
		var chain why.Chain
		first, err := reader.Get(ctx, l.kind, l.names[0])
		if apierrors.IsNotFound(err) {
			continue // it was deleted meanwhile
		}
		if err == nil {
			chain, err = explain(first)
		}
		if err != nil {
			failures = errors.Join(failures, err)
			continue
		}
		explained += len(l.names)
		cause := chain.Cause()
		key := strings.Join([]string{l.kind.String(), string(chain.Code), alike(l.names[0], cause.Object.String()+": "+cause.Message)}, "|")
		position, found := positions[key]
		if !found || len(chain.Links) == 0 {
			position, l.names = len(list.Items), l.names[1:]
			positions[key], list.Items = position, append(list.Items, sameCause{Chain: chain})
		}
		for _, name := range l.names {
			list.Items[position].Same = append(list.Items[position].Same, strings.TrimPrefix(name.String(), "/"))
		}
	}
	if ctx.Err() != nil {
		return errors.Join(failures, ctx.Err())
	}
	if o.isText() {
		for i, item := range list.Items {
			if i > 0 {
				fmt.Fprintln(f.Out)
			}
			fmt.Fprint(f.Out, item.text(f.now()))
		}
	} else {
		err = f.encode(o.format, list)
	}
	if len(components) > 0 {
		fmt.Fprintln(f.ErrOut, howMany(len(components), notReady, explained, len(all) > maxExplained, place))
	}
	if err = errors.Join(failures, err); err == nil && notReady > 0 {
		err = &ExitError{Code: CodeNo}
	}
	return err
}

// text is one line and the next command if several components have the cause.
func (c sameCause) text(now time.Time) string {
	if len(c.Same) == 0 {
		return c.Chain.Text(now)
	}
	cause := c.Cause()
	text := cause.Message
	if cause.Object != c.Component {
		text = cause.Object.String() + ": " + text
	}
	return sentence.Printable(fmt.Sprintf("%d components are not Ready, such as %s: %s\nTry: %s\n", len(c.Same)+1, c.Component, sentence.OneLine(text), c.Command))
}

// howMany says how many components there are, and how many of them are not Ready.
func howMany(total, notReady, explained int, limited bool, place string) string {
	are := map[bool]string{true: "is", false: "are"}
	if notReady == 0 {
		return fmt.Sprintf("%s%s %s Ready", count(total, "component", "components"), place, are[total == 1])
	}
	text := fmt.Sprintf("%d of %s%s %s not Ready", notReady, count(total, "component", "components"), place, are[notReady == 1])
	if explained < notReady {
		text += fmt.Sprintf("; explained: %d", explained)
	}
	if limited {
		text += fmt.Sprintf(", which are those with the %d worst causes", maxExplained)
	}
	return text
}
