// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
)

func (f *frame) rbacCommand() *cobra.Command {
	var serviceAccount string
	command := &cobra.Command{
		Use: "rbac " + componentUse, Short: "Print the rights that the operator of a component needs for its dependents",
		Long: "Print the rights that the operator of a component needs for the dependents in its inventory, as Roles and a ClusterRole. Rights that only another " +
			"revision needs are missing. If you may read the rights of the service account, the command prints missing rights to the standard error, and the exit code is 1 if there are any.",
		Example: "  corbel rbac shop/corner\n  corbel rbac shop/corner --service-account shop-system/shop-operator",
		Args:    componentArguments, ValidArgsFunction: f.completeComponents,
		RunE: func(c *cobra.Command, arguments []string) error {
			return f.rbac(c.Context(), arguments, serviceAccount)
		},
	}
	command.Flags().StringVar(&serviceAccount, "service-account", "", "NAMESPACE/NAME of the service account; by default that of the only Deployment in the namespace of the operator")
	return command
}

func (f *frame) rbac(ctx context.Context, arguments []string, serviceAccount string) error {
	if serviceAccount != "" && strings.Count(serviceAccount, "/") != 1 {
		return usage("--service-account %q: write NAMESPACE/NAME", serviceAccount)
	}
	c, err := f.component(ctx, arguments)
	if err != nil {
		return err
	}
	connection, err := f.connect()
	if err != nil {
		return err
	}
	inventory, err := connection.reader.Inventory(ctx, c)
	if err != nil && !inspect.IsLost(err) {
		return err
	}
	f.warn(err)
	for _, shared := range connection.reader.SharedTypes(ctx, c) {
		inventory.Items = append(inventory.Items, shared.Item)
	}
	rules, unknown := connection.reader.Rules(inventory)
	f.warn(unknown)
	if err := f.printRoles(c, rules); err != nil {
		return err
	}
	if serviceAccount == "" {
		if serviceAccount, err = connection.reader.ServiceAccountOf(ctx, c); err != nil {
			f.warn(fmt.Errorf("which rights the operator lacks is not checked: %w; name its service account with --service-account", err))
			return nil
		}
	}
	lacking, err := inspect.Lacking(ctx, connection.client, serviceAccount, rules)
	if err != nil {
		f.warn(fmt.Errorf("which rights the operator lacks is not checked: %w", err))
		return nil
	}
	for _, right := range lacking {
		fmt.Fprintf(f.ErrOut, "the service account %s may not %s\n", serviceAccount, right)
	}
	if len(lacking) > 0 {
		return errNotSo
	}
	return nil
}

// printRoles prints Roles and a ClusterRole as YAML.
func (f *frame) printRoles(c inspect.Component, all []inspect.Rules) error {
	name := strings.ToLower(c.Type.Kind) + "-" + c.Object.GetName() + "-dependents"
	var out bytes.Buffer
	for i, in := range all {
		var role any
		if in.Namespace == "" {
			role = rbacv1.ClusterRole{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
				ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: in.Rules,
			}
		} else {
			role = rbacv1.Role{
				TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role"},
				ObjectMeta: metav1.ObjectMeta{Namespace: in.Namespace, Name: name}, Rules: in.Rules,
			}
		}
		text, err := yaml.Marshal(role)
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteString("---\n")
		}
		out.Write(text)
	}
	_, err := f.Out.Write(out.Bytes())
	return err
}
