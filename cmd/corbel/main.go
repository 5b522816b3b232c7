// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Corbel makes the project of an operator from a Helm chart, a kustomization or a folder of manifests, and
// runs it on a control plane of its own.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// newCommand returns the program.
func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use: "corbel", Short: "Make and run operators",
		SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(initCommand(), devCommand(), controlPlaneCommand())
	return root
}
