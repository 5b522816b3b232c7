// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// revision and date are those of the commit of a release. make dist sets them with the linker, because the go command records
// no commit for a module that it got from a proxy.
var revision, date string

// versionCommand returns the command that says which program this is.
func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program, the commit it was built from, the version of Go, and the platform",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			_, err := fmt.Fprint(command.OutOrStdout(), describe(info, revision, date))
			return err
		},
	}
}

// describe returns the lines of the command. A value that was not recorded is "unknown".
func describe(info *debug.BuildInfo, revision, date string) string {
	// The commit of a main module that is not the command's is that of a project with the tool corbel.
	if revision == "" && info.Main.Path == commandModule {
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		revision, date = settings["vcs.revision"], settings["vcs.time"]
		if settings["vcs.modified"] == "true" {
			revision += " with changes"
		}
	}
	return fmt.Sprintf("version    %s\nrevision   %s\ndate       %s\ngo         %s\nplatform   %s/%s\n",
		cmp.Or(releaseIn(info), "(devel)"), cmp.Or(revision, "unknown"), cmp.Or(date, "unknown"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
