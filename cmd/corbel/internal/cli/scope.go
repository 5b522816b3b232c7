// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// scope is which components a command is about: the component that the arguments name, or all of a namespace or of all namespaces.
type scope struct {
	arguments     []string
	allNamespaces bool
}

// addScope lets a command be about many components. The verb completes the text of the flag -A.
func addScope(command *cobra.Command, verb string) *scope {
	s := &scope{}
	command.Flags().BoolVarP(&s.allNamespaces, "all-namespaces", "A", false, verb+" components of all namespaces")
	command.Args = func(c *cobra.Command, arguments []string) error {
		switch s.arguments = arguments; {
		case len(arguments) == 0:
			return nil
		case s.allNamespaces:
			return usage("a name cannot be combined with -A")
		}
		return componentArguments(c, arguments)
	}
	return s
}

// isOne reports whether a component is named.
func (s *scope) isOne() bool { return len(s.arguments) > 0 }

// each calls a function with each component of the scope. A component that cannot be read does not hide the rest: the error names all of them.
func (f *frame) each(ctx context.Context, s *scope, do func(inspect.Component) error) error {
	if s.isOne() {
		c, err := f.component(ctx, s.arguments)
		if err != nil {
			return err
		}
		return do(c)
	}
	reader, err := f.reader()
	if err != nil {
		return err
	}
	listed, failure := f.listed(ctx, s)
	failures := []error{failure}
	for _, c := range listed {
		whole, err := reader.Get(ctx, c.Type, client.ObjectKeyFromObject(c.Object)) // a list lacks the items of the inventory
		if apierrors.IsNotFound(err) {
			continue // it was deleted meanwhile
		}
		if err == nil {
			err = do(whole)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

// eachSet is each, with the dependents of the component, and with what is lost of its inventory.
func (f *frame) eachSet(ctx context.Context, s *scope, do func(c inspect.Component, dependents []inspect.Dependent, lost error)) error {
	return f.each(ctx, s, func(c inspect.Component) error {
		dependents, lost, err := f.dependentsOf(ctx, c)
		if err == nil {
			do(c, dependents, lost)
		}
		return err
	})
}

// listed returns the components of a namespace, or of all. A type that cannot be listed does not hide the others.
func (f *frame) listed(ctx context.Context, s *scope) ([]inspect.Component, error) {
	namespace, err := f.namespace()
	if err != nil {
		return nil, err
	}
	if s.allNamespaces {
		namespace = ""
	}
	reader, err := f.reader()
	if err != nil {
		return nil, err
	}
	types, err := reader.Types()
	if err != nil {
		return nil, err
	}
	var found []inspect.Component
	var failures []error
	for _, t := range types {
		if !t.Namespaced && !s.allNamespaces {
			continue // its components are in no namespace
		}
		_, err := reader.List(ctx, t, inspect.Selection{Namespace: namespace}, func(c inspect.Component) error {
			found = append(found, c)
			return nil
		})
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		failures = append(failures, err)
	}
	if err = errors.Join(failures...); err == nil && len(found) == 0 {
		f.nothing(namespace)
	}
	return found, err
}

// nothing says that there are no components in a namespace, or in all.
func (f *frame) nothing(namespace string) {
	text := "No components found"
	if namespace != "" {
		text += " in namespace " + namespace + "; -A looks in all namespaces"
	}
	fmt.Fprintln(f.ErrOut, text)
}
