// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the program corbel, so that the reference and the tests of the documents can read its commands and
// flags, and the tests can be the program.
package command

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/corbel-run/corbel/cmd/corbel/internal/cli"
)

// Main runs the program until a signal ends it, and returns its exit code.
func Main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := New().ExecuteContext(ctx)
	stop()
	return cli.Report(err, os.Stderr)
}

// New returns the program.
func New() *cobra.Command {
	root := cli.NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	root.Version = version()
	root.AddCommand(initCommand(), devCommand(), fieldsCommand(), controlPlaneCommand(), versionCommand())
	return root
}
