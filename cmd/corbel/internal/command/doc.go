// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package command is the program corbel without its main function, so that the reference and the tests of the
// documents can read its commands and flags.
package command

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/corbel-run/corbel/cmd/corbel/internal/cli"
)

// New returns the program.
func New() *cobra.Command {
	root := cli.NewCommand(genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr})
	root.Version = version()
	root.AddCommand(initCommand(), devCommand(), fieldsCommand(), controlPlaneCommand())
	return root
}
