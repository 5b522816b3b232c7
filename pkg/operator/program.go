// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
)

// Kind is a kind of components of a program with several kinds. Options implement it.
type Kind interface {
	kindName() string
	commands() []*cobra.Command
	addToScheme(*runtime.Scheme) error
	reconcilerOptions() component.ReconcilerOptions
	setUp(ctrl.Manager, *metav1.LabelSelector, *component.LeaderLock) error
	uninstall(context.Context, client.Client, []string, io.Writer) error
	deleteSharedTypes(context.Context, client.Client, io.Writer) error
}

// program is an operator for one or more kinds, with one manager.
type program struct {
	name  string // also of the Lease
	kinds []Kind
}

// MainOf is Main for several kinds of components, with one manager and one Lease, which has the name. The commands run and
// uninstall are for all kinds. The commands of a kind, such as plan, are below a command with the name of the kind in lower
// case. The names of the reconcilers must differ.
func MainOf(name string, kinds ...Kind) { exit(program{name, kinds}.command()) }

// exit runs a command, and ends the process.
func exit(command *cobra.Command) {
	err := command.ExecuteContext(ctrl.SetupSignalHandler())
	code, coded := errors.AsType[exitError](err)
	switch {
	case err == nil:
		os.Exit(0)
	case coded:
		os.Exit(int(code))
	}
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

// command returns the command of the program.
func (p program) command() *cobra.Command {
	root := p.runCommand()
	root.Use, root.Version = p.name, version()
	root.SilenceUsage, root.SilenceErrors = true, true
	run := p.runCommand()
	run.Use = "run"
	root.AddCommand(run, p.uninstallCommand(), &cobra.Command{
		Use: "version", Short: "Print the version of the program", Args: cobra.NoArgs,
		Run: func(c *cobra.Command, _ []string) { fmt.Fprintln(c.OutOrStdout(), version()) },
	})
	for _, kind := range p.kinds {
		parent := root
		if len(p.kinds) > 1 {
			parent = &cobra.Command{Use: kind.kindName(), Short: "Plan and render components of the kind " + kind.kindName()}
			root.AddCommand(parent)
		}
		parent.AddCommand(kind.commands()...)
	}
	root.CompletionOptions.DisableDefaultCmd = true
	return root
}

// scheme returns a scheme with the types of all kinds and of Kubernetes.
func (p program) scheme() (*runtime.Scheme, error) {
	if len(p.kinds) == 0 {
		return nil, errors.New("the program has no kind of components: pass the Options of one at least to MainOf")
	}
	scheme := runtime.NewScheme()
	for _, kind := range p.kinds {
		if err := kind.addToScheme(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

func (o Options[T]) kindName() string { return strings.ToLower(reflect.TypeFor[T]().Elem().Name()) }

func (o Options[T]) commands() []*cobra.Command { return append(o.offlineCommands(), o.planCommand()) }

func (o Options[T]) reconcilerOptions() component.ReconcilerOptions { return o.Reconciler }

// setUp adds the reconciler for the components that a selector selects to a manager. Without a selector, that of the options holds.
func (o Options[T]) setUp(manager ctrl.Manager, selector *metav1.LabelSelector, lock *component.LeaderLock) error {
	if selector != nil {
		o.Reconciler.Controller.LabelSelector = selector
	}
	if lock != nil {
		o.Reconciler.Controller.LeaderLock = lock
	}
	_, err := o.SetUp(manager)
	return err
}
