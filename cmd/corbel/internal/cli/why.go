// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/internal/why"
)

// explanation is why a component is not ready, in JSON and YAML.
type explanation struct {
	typeMeta  `json:",inline"`
	why.Chain `json:",inline"`
}

// explanationList are explanations in JSON and YAML.
type explanationList struct {
	typeMeta `json:",inline"`
	Items    []why.Chain `json:"items"`
}

// maxExplained is how many components are explained if none is named.
const maxExplained = 10

func (f *frame) whyCommand() *cobra.Command {
	var o *output
	var allNamespaces bool
	command := &cobra.Command{
		Use:   "why [" + componentUse + "]",
		Short: "Say why a component is not Ready, and what to do",
		Long: "Say why a component is not Ready: the object that is to blame, the field, since when, what is held back by it, and the next command " +
			"to type. Without a name, the components of the namespace, or with -A of all namespaces, that are not Ready are explained, at most 10.\n\n" +
			"At most 10 requests are sent for a component, but for those of discovery. No log is read, because it may hold values of Secrets: the next command to type shows it.\n\n" +
			"The exit code is 0 if the component is Ready, 1 if it is not, and 2 after an error.",
		Example: "  corbel why -A\n  corbel why -n market\n  corbel why shop/corner -n market\n  corbel why shop/corner -o json",
		Args: func(c *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return nil
			}
			if allNamespaces {
				return usage("a name cannot be combined with -A")
			}
			return componentArguments(c, arguments)
		},
		ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return f.why(c.Context(), arguments, allNamespaces, o)
		},
	}
	o = addOutputFlag(command)
	command.Flags().BoolVarP(&allNamespaces, "all-namespaces", "A", false, "explain components of all namespaces")
	return command
}

func (f *frame) why(ctx context.Context, arguments []string, allNamespaces bool, o *output) error {
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
	if len(arguments) == 0 {
		return f.whyAll(ctx, connection.reader, allNamespaces, explain, o)
	}
	found, err := f.component(ctx, arguments)
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

// whyAll explains the components of the namespace, or of all, that are not Ready.
func (f *frame) whyAll(ctx context.Context, reader *inspect.Reader, allNamespaces bool, explain func(inspect.Component) (why.Chain, error), o *output) error {
	namespace, err := f.namespace()
	if err != nil {
		return err
	}
	place := " in namespace " + namespace
	if allNamespaces {
		namespace, place = "", ""
	}
	types, err := reader.Types()
	if err != nil {
		return err
	}
	list, total, unready := explanationList{typeMeta: outputOf("ExplanationList"), Items: []why.Chain{}}, 0, 0
	tried, failures := 0, []error(nil) // what cannot be read does not hide the rest
	for _, t := range types {
		if !t.Namespaced && !allNamespaces {
			continue // its components are in no namespace
		}
		var names []client.ObjectKey
		if _, err := reader.List(ctx, t, inspect.Selection{Namespace: namespace}, func(c inspect.Component) error {
			total++
			if c.Ready().Status != metav1.ConditionTrue || c.Status.ObservedGeneration != c.Object.GetGeneration() {
				names = append(names, client.ObjectKeyFromObject(c.Object))
			}
			return nil
		}); err != nil {
			if ctx.Err() != nil {
				return err
			}
			failures = append(failures, err)
		}
		unready += len(names)
		for _, name := range names {
			if tried++; tried > maxExplained {
				break
			}
			found, err := reader.Get(ctx, t, name)
			if apierrors.IsNotFound(err) {
				continue // it was deleted meanwhile
			}
			var chain why.Chain
			if err == nil {
				chain, err = explain(found)
			}
			switch {
			case ctx.Err() != nil:
				return err
			case err != nil:
				failures = append(failures, err)
			default:
				list.Items = append(list.Items, chain)
			}
		}
	}
	if !o.isText() {
		err = f.encode(o.format, list)
	} else {
		for i, chain := range list.Items {
			if i > 0 {
				fmt.Fprintln(f.Out)
			}
			fmt.Fprint(f.Out, chain.Text(f.now()))
		}
	}
	fmt.Fprintf(f.ErrOut, "%d of %d components%s are not Ready", unready, total, place)
	if unready > len(list.Items) {
		fmt.Fprintf(f.ErrOut, "; explained: %d", len(list.Items))
	}
	if total == 0 && !allNamespaces {
		fmt.Fprint(f.ErrOut, "; -A looks in all namespaces")
	}
	fmt.Fprintln(f.ErrOut)
	if err = errors.Join(append(failures, err)...); err == nil && unready > 0 {
		err = &ExitError{Code: CodeNo}
	}
	return err
}
