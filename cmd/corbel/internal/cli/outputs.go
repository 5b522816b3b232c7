// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// outputList are the outputs of a component in JSON and YAML. Secret ones are null, unless their values are asked for.
type outputList struct {
	typeMeta  `json:",inline"`
	Component objectReference    `json:"component"`
	Outputs   map[string]*string `json:"outputs"`
}

func (f *frame) outputsCommand() *cobra.Command {
	var o *output
	var showSecrets bool
	command := &cobra.Command{
		Use: "outputs " + componentUse, Short: "Print the outputs of a component",
		Long: "Print the values that a component publishes, such as the host of its Service. Of secret outputs only the names are printed; with --show-secrets their " +
			"values are read from the Secret with the name of the component and the suffix -outputs.\n\n" +
			"With -o env each output is a line NAME='VALUE' for a shell. The name is in capitals, with _ for characters other than letters and digits.",
		Example: "  corbel outputs shop/corner\n  corbel outputs shop/corner -o env --show-secrets",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			return f.outputs(c.Context(), arguments, o, showSecrets)
		},
	}
	o = addOutputFlag(command, "table", "env")
	command.Flags().BoolVar(&showSecrets, "show-secrets", false, "print the values of secret outputs, too")
	return command
}

func (f *frame) outputs(ctx context.Context, arguments []string, o *output, showSecrets bool) error {
	c, err := f.component(ctx, arguments)
	if err = cmp.Or(o.check(), err, c.Mistake); err != nil {
		return err
	}
	list, secret := outputList{outputOf("Outputs"), referenceTo(c), outputsOf(c)}, &corev1.Secret{}
	key := client.ObjectKey{Namespace: c.Object.GetNamespace(), Name: vocabulary.OutputsSecret(c.Object.GetName())}
	if showSecrets && len(c.Status.SecretOutputs) > 0 {
		if err := f.connection.client.Get(ctx, key, secret); err != nil {
			return fmt.Errorf("read Secret %s with the secret outputs of %s: %w", key, c, err)
		}
	}
	for _, name := range c.Status.SecretOutputs {
		if value, found := secret.Data[name]; found {
			list.Outputs[name] = new(string(value))
		} else if showSecrets {
			return fmt.Errorf("the Secret %s lacks the output %s of %s: its operator writes it after %q", key, name, c, c.Command("reconcile"))
		}
	}
	var rows [][]cell
	for _, name := range slices.Sorted(maps.Keys(list.Outputs)) {
		rows = append(rows, []cell{plain(name), plain(*cmp.Or(list.Outputs[name], new("(secret)")))})
	}
	switch {
	case o.format == "json", o.format == "yaml":
		return f.encode(o.format, list)
	case len(rows) == 0:
		_, err := fmt.Fprintf(f.ErrOut, "%s has no outputs\n", c)
		return err
	case o.format == "env":
		return f.environment(list.Outputs)
	}
	return f.table("NAME", "VALUE").print(rows)
}

// outputsOf returns the outputs of a component; the values of secret ones are nil.
func outputsOf(c inspect.Component) map[string]*string {
	outputs := map[string]*string{}
	for name, value := range c.Status.Outputs {
		outputs[name] = &value
	}
	for _, name := range c.Status.SecretOutputs {
		outputs[name] = nil
	}
	return outputs
}

// notOfVariables is what the names of variables of a shell do not have.
var notOfVariables = regexp.MustCompile(`^[0-9]|[^A-Z0-9]`)

// environment prints outputs as assignments of a shell. Secret ones without a value are left out.
func (f *frame) environment(outputs map[string]*string) error {
	var lines strings.Builder
	names := map[string]string{} // by the names of variables
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		variable := notOfVariables.ReplaceAllString(strings.ToUpper(name), "_")
		switch value := outputs[name]; {
		case value == nil:
			f.warn(fmt.Errorf("the output %s is secret, and is left out without --show-secrets", name))
		case names[variable] != "":
			return fmt.Errorf("the outputs %s and %s are both the variable %s: print them with -o json", names[variable], name, variable)
		case inOneLine(*value) != *value:
			return fmt.Errorf("the output %s has several lines or control characters: print it with -o json", name)
		default:
			names[variable] = name
			fmt.Fprintf(&lines, "%s='%s'\n", variable, strings.ReplaceAll(*value, "'", `'\''`))
		}
	}
	_, err := fmt.Fprint(f.Out, lines.String())
	return err
}
