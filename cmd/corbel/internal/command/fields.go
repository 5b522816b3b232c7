// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"github.com/spf13/cobra"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
)

// fieldsCommand returns the command that writes the table of the fields of a project.
func fieldsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "fields",
		Short: "Write the table of the fields of the spec into the README.md of the project in this folder, as its Go types declare them",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := scaffold.WriteFieldTable(".")
			return err
		},
	}
}
