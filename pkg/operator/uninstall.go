// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// uninstallCommand returns the command that deletes all components.
func (o Options[T]) uninstallCommand() *cobra.Command {
	var timeout time.Duration
	var namespaces []string
	command := &cobra.Command{
		Use: "uninstall", Short: "Delete all components, and wait until they are gone; the operator has to run", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			scheme, err := o.Scheme()
			if err != nil {
				return err
			}
			if namespaces, err = o.watched(namespaces); err != nil {
				return err
			}
			local, err := client.New(config, client.Options{Scheme: scheme})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return o.uninstall(ctx, local, namespaces, c.OutOrStdout())
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long it waits for the components to be gone")
	command.Flags().StringSliceVar(&namespaces, "watch-namespace", nil, watchUsage)
	return command
}

// uninstallInterval is how often uninstall looks whether the components are gone.
const uninstallInterval = time.Second

// uninstall deletes all components, and waits until they are gone. A type that is not served has no
// components.
func (o Options[T]) uninstall(ctx context.Context, c client.Client, namespaces []string, out io.Writer) error {
	kind, err := o.kind(c)
	if err != nil {
		return err
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	deleted := map[types.UID]bool{}
	var left []string
	err = wait.PollUntilContextCancel(ctx, uninstallInterval, true, func(ctx context.Context) (bool, error) {
		left = nil
		for _, namespace := range namespaces {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			if err := c.List(ctx, list, client.InNamespace(namespace)); apimeta.IsNoMatchError(err) {
				return true, nil
			} else if err != nil {
				return false, err
			}
			for i := range list.Items {
				item := &list.Items[i]
				key := client.ObjectKeyFromObject(item)
				left = append(left, key.String())
				if deleted[item.UID] || item.DeletionTimestamp != nil {
					continue
				}
				if err := c.Delete(ctx, item, client.Preconditions{UID: &item.UID}); apierrors.IsConflict(err) {
					continue // it was created again; the next look finds it
				} else if client.IgnoreNotFound(err) != nil {
					return false, fmt.Errorf("delete %s %s: %w", kind.Kind, key, err)
				}
				deleted[item.UID] = true
				fmt.Fprintf(out, "deleting %s %s\n", kind.Kind, key)
			}
		}
		return len(left) == 0, nil
	})
	if err != nil && ctx.Err() != nil && len(left) > 0 {
		return fmt.Errorf("%d components of kind %s are not gone yet; condition Ready says why: %v: %w", len(left), kind.Kind, left, err)
	}
	return err
}

// kind returns the kind of the components.
func (o Options[T]) kind(c client.Client) (schema.GroupVersionKind, error) {
	component := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(client.Object)
	return apiutil.GVKForObject(component, c.Scheme())
}
