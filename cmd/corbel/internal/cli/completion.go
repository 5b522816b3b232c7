// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

// errEnough ends a list early.
var errEnough = errors.New("enough")

// maxCompletions bounds what a shell is offered.
const maxCompletions = 200

// completeComponents completes KIND, KIND/NAME and NAME.
func (f *frame) completeComponents(command *cobra.Command, arguments []string, begin string) ([]string, cobra.ShellCompDirective) {
	reader, err := f.reader()
	if err != nil || len(arguments) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	kind, name, hasKind := strings.Cut(begin, "/")
	switch {
	case len(arguments) == 1:
		return f.names(command.Context(), reader, arguments[0], "", begin), cobra.ShellCompDirectiveNoFileComp
	case hasKind:
		return f.names(command.Context(), reader, kind, kind+"/", name), cobra.ShellCompDirectiveNoFileComp
	}
	found := kinds(reader, begin)
	if types, err := reader.Types(); err == nil && begin != "" {
		for _, t := range types {
			found = append(found, f.names(command.Context(), reader, t.String(), "", begin)...)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// completeRevisions completes the earlier revisions of a component. The history keeps the manifests of these revisions.
func (f *frame) completeRevisions(command *cobra.Command, arguments []string, begin string) (found []string, _ cobra.ShellCompDirective) {
	if componentArguments(command, arguments) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c, _ := f.component(command.Context(), arguments) // without a history if it cannot be read
	for _, revision := range c.Status.History {
		if number := strconv.FormatInt(revision.Revision, 10); strings.HasPrefix(number, begin) && revision.Digest != "" && revision.Revision != c.Status.Revision {
			found = append(found, fmt.Sprintf("%s\t%s, started %s ago", number, revision.Result, age(revision.AppliedAt.Time, f.now())))
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// files are the flags with the name of a file.
var files = []string{"filename", "operator", "kubeconfig", "certificate-authority", "client-certificate", "client-key"}

// completeNoFiles keeps the shell from offering the names of files where none is meant.
func completeNoFiles(command *cobra.Command) {
	if command.ValidArgsFunction == nil {
		command.ValidArgsFunction = cobra.NoFileCompletions
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if _, completes := command.GetFlagCompletionFunc(flag.Name); !completes && !slices.Contains(files, flag.Name) {
			_ = command.RegisterFlagCompletionFunc(flag.Name, cobra.NoFileCompletions)
		}
	})
}

// kinds returns the names of types of components that begin with a text.
func kinds(reader *inspect.Reader, begin string) []string {
	types, err := reader.Types()
	if err != nil {
		return nil
	}
	var found []string
	for _, t := range types {
		if strings.HasPrefix(t.Resource, begin) {
			found = append(found, t.Resource)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// names returns the names of components that begin with a text.
func (f *frame) names(ctx context.Context, reader *inspect.Reader, kind, prefix, begin string) []string {
	t, err := reader.Resolve(kind)
	if err != nil {
		return nil
	}
	namespace, err := f.namespace()
	if err != nil {
		return nil
	}
	if !t.Namespaced {
		namespace = ""
	}
	var found []string
	_, err = reader.List(ctx, t, inspect.Selection{Namespace: namespace}, func(c inspect.Component) error {
		if strings.HasPrefix(c.Object.GetName(), begin) {
			found = append(found, prefix+c.Object.GetName())
		}
		if len(found) >= maxCompletions {
			return errEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil
	}
	return found
}

func (f *frame) completeNamespaces(command *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	connection, err := f.connect()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NamespaceList"))
	if err := connection.client.List(command.Context(), list); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for _, namespace := range list.Items {
		if strings.HasPrefix(namespace.Name, begin) {
			found = append(found, namespace.Name)
		}
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

func (f *frame) completeContexts(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
	config, err := f.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var found []string
	for name := range config.Contexts {
		if strings.HasPrefix(name, begin) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, cobra.ShellCompDirectiveNoFileComp
}
