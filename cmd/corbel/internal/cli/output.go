// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/sentence"
)

// apiVersion is that of all output in JSON and YAML. Fields may be added to it; none is removed or gets another meaning.
const apiVersion = "corbel.run/cli/v1"

// typeMeta says what an output in JSON or YAML is.
type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

func outputOf(kind string) typeMeta { return typeMeta{APIVersion: apiVersion, Kind: kind} }

// output is the flag for the output format. The text for people is the empty format.
type output struct {
	format  string
	allowed []string
}

// addOutputFlag adds the flag. JSON and YAML are always allowed.
func addOutputFlag(command *cobra.Command, further ...string) *output {
	o := &output{allowed: append([]string{"json", "yaml"}, further...)}
	command.Flags().StringVarP(&o.format, "output", "o", "", strings.Join(o.allowed, ", ")+"; by default text")
	_ = command.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(o.allowed, cobra.ShellCompDirectiveNoFileComp))
	return o
}

// check refuses unknown formats.
func (o *output) check() error {
	if o.format != "" && !slices.Contains(o.allowed, o.format) {
		return usage("output format %q is unknown; choose one of %s", o.format, strings.Join(o.allowed, ", "))
	}
	return nil
}

// isText reports whether the text for people is asked for.
func (o *output) isText() bool { return o.format == "" || o.format == "wide" }

// encode prints a value as JSON or YAML.
func (f *frame) encode(format string, value any) error {
	serialised, err := json.MarshalIndent(value, "", "    ")
	if err != nil {
		return err
	}
	if format == "yaml" {
		if serialised, err = yaml.JSONToYAML(serialised); err != nil {
			return err
		}
	} else {
		serialised = []byte(sentence.Printable(string(serialised)) + "\n")
	}
	_, err = f.Out.Write(serialised)
	return err
}
