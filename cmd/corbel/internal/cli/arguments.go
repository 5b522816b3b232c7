// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// componentUse is what the usage of a command calls a component.
const componentUse = "KIND/NAME"

// componentArguments are the arguments of a command about one component: KIND/NAME, KIND NAME, or NAME.
func componentArguments(_ *cobra.Command, arguments []string) error {
	switch {
	case len(arguments) == 1, len(arguments) == 2 && !strings.Contains(arguments[0], "/") && !strings.Contains(arguments[1], "/"):
		return nil
	case len(arguments) == 0:
		return usage("name a component: KIND/NAME, KIND NAME, or NAME if no other component has it")
	}
	return usage("name one component: KIND/NAME, KIND NAME, or NAME; got %q", arguments)
}

// split returns the kind and the name of KIND/NAME, KIND NAME or NAME. The kind of the last one is empty.
func split(arguments []string) (kind, name string, err error) {
	if len(arguments) == 2 {
		kind, name = arguments[0], arguments[1]
	} else if before, after, ok := strings.Cut(arguments[0], "/"); ok {
		kind, name = before, after
		if kind == "" {
			return "", "", usage("%q has no kind: write KIND/NAME", arguments[0])
		}
	} else {
		name = arguments[0]
	}
	if name == "" || strings.Contains(name, "/") {
		return "", "", usage("%q is no KIND/NAME; choose the namespace with -n", strings.Join(arguments, " "))
	}
	return kind, name, nil
}

// component reads the component that the arguments name.
func (f *frame) component(ctx context.Context, arguments []string) (inspect.Component, error) {
	kind, name, err := split(arguments)
	if err != nil {
		return inspect.Component{}, err
	}
	namespace, err := f.namespace()
	if err != nil {
		return inspect.Component{}, err
	}
	reader, err := f.reader()
	if err != nil {
		return inspect.Component{}, err
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	if kind == "" {
		return findByName(ctx, reader, key)
	}
	t, err := resolve(reader, kind)
	if err != nil {
		return inspect.Component{}, err
	}
	found, err := reader.Get(ctx, t, key)
	if apierrors.IsNotFound(err) {
		return found, fmt.Errorf("%w; \"corbel get %s -A\" lists what is there", err, t.Resource)
	}
	if err == nil && !t.Component && !found.IsComponent() {
		return found, fmt.Errorf("%s is no component: its type lacks the category %q, and its status is not one that Corbel wrote", found, inspect.Category)
	}
	return found, err
}

// findByName finds the component of a name among all types of components.
func findByName(ctx context.Context, reader *inspect.Reader, key client.ObjectKey) (inspect.Component, error) {
	types, err := reader.Types()
	if err != nil {
		return inspect.Component{}, err
	}
	var found []inspect.Component
	var refused []error
	for _, t := range types {
		c, err := reader.Get(ctx, t, key)
		switch {
		case err == nil:
			found = append(found, c)
		case !apierrors.IsNotFound(err):
			refused = append(refused, err)
		}
	}
	switch {
	case len(found) == 1 && len(refused) == 0:
		return found[0], nil
	case len(found) > 1:
		ambiguous := &inspect.AmbiguousError{Name: key.Name}
		for _, c := range found {
			ambiguous.Matches = append(ambiguous.Matches, c.Type.String()+"/"+key.Name)
		}
		return inspect.Component{}, fmt.Errorf("%w: write KIND/NAME", ambiguous)
	case len(refused) > 0:
		return inspect.Component{}, fmt.Errorf("find the component %q: %w", key.Name, errors.Join(refused...))
	}
	return inspect.Component{}, fmt.Errorf("no component in namespace %s is called %q; \"corbel get -A\" lists all", key.Namespace, key.Name)
}

// resolve returns the type of a name. One that is unknown is answered with those that are similar.
func resolve(reader *inspect.Reader, name string) (inspect.Type, error) {
	t, err := reader.Resolve(name)
	if _, ok := errors.AsType[*inspect.AmbiguousError](err); ok {
		return t, fmt.Errorf("%w: name the group, too", err)
	}
	if _, unknown := errors.AsType[*inspect.UnknownKindError](err); !unknown {
		return t, err
	}
	types, typesErr := reader.Types()
	if typesErr != nil {
		return t, err
	}
	var known []string
	for _, t := range types {
		known = append(known, t.Resource)
	}
	if similar := similar(name, types); len(similar) > 0 {
		return t, fmt.Errorf("%w; did you mean %s?", err, strings.Join(similar, " or "))
	}
	return t, fmt.Errorf("%w; types of components are %s", err, strings.Join(known, ", "))
}

// similar returns the types with a name like this one, as cobra finds commands.
func similar(name string, types []inspect.Type) []string {
	kinds := &cobra.Command{SuggestionsMinimumDistance: 2}
	for _, t := range types {
		kinds.AddCommand(&cobra.Command{Use: t.Resource, SuggestFor: append([]string{t.Singular}, t.ShortNames...), Run: func(*cobra.Command, []string) {}})
	}
	plural, _, _ := strings.Cut(strings.ToLower(name), ".")
	return kinds.SuggestionsFor(plural)
}
