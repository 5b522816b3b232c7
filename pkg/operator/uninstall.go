// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// uninstallCommand returns the command that deletes all components.
func (p program) uninstallCommand() *cobra.Command {
	var timeout time.Duration
	var namespaces []string
	var crds bool
	command := &cobra.Command{
		Use: "uninstall", Short: "Delete all components, and wait until they are gone; the operator has to run", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := ctrl.GetConfig()
			if err != nil {
				return err
			}
			scheme, err := p.scheme()
			if err != nil {
				return err
			}
			if namespaces, err = p.watched(namespaces); err != nil {
				return err
			}
			local, err := client.New(config, client.Options{Scheme: scheme})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(c.Context(), timeout)
			defer cancel()
			return p.uninstall(ctx, local, namespaces, crds, c.OutOrStdout())
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long it waits for the components to be gone")
	command.Flags().BoolVar(&crds, "crds", false, "delete the definitions, too, that all components share; those with instances stay, and are an error")
	command.Flags().StringSliceVar(&namespaces, "watch-namespace", nil, watchUsage)
	return command
}

// uninstall deletes the components of all kinds, and waits until they are gone. With shared, the definitions that they share follow.
func (p program) uninstall(ctx context.Context, c client.Client, namespaces []string, shared bool, out io.Writer) error {
	var errs []error
	for _, kind := range p.kinds {
		errs = append(errs, kind.uninstall(ctx, c, namespaces, out))
	}
	if err := errors.Join(errs...); err != nil || !shared {
		return err
	}
	errs = nil
	for _, kind := range p.kinds { // components of several kinds may use the same definition
		errs = append(errs, kind.deleteSharedTypes(ctx, c, out))
	}
	return errors.Join(errs...)
}

// uninstallInterval is how often uninstall looks whether the components are gone.
const uninstallInterval = time.Second

// uninstall deletes all components, and waits until they are gone. A type that is not served has no
// components.
func (o Options[T]) uninstall(ctx context.Context, c client.Client, namespaces []string, out io.Writer) error {
	kind, err := o.kind(c.Scheme())
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

// deleteSharedTypes deletes the definitions that all components share, but for definitions with
// instances.
func (o Options[T]) deleteSharedTypes(ctx context.Context, c client.Client, out io.Writer) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinitionList"))
	if err := c.List(ctx, list, client.HasLabels{o.Name + "/" + vocabulary.LabelShared}); err != nil {
		return fmt.Errorf("list the definitions that components share: %w", err)
	}
	var errs []error
	for i := range list.Items {
		if err := deleteUnused(ctx, c, &list.Items[i]); err != nil {
			errs = append(errs, fmt.Errorf("CustomResourceDefinition %s: %w", list.Items[i].GetName(), err))
			continue
		}
		fmt.Fprintf(out, "deleting CustomResourceDefinition %s\n", list.Items[i].GetName())
	}
	return errors.Join(errs...)
}

// deleteUnused deletes a definition that has no instances.
func deleteUnused(ctx context.Context, c client.Client, crd *unstructured.Unstructured) error {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind")
	mapping, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: kind})
	if err != nil {
		return fmt.Errorf("look for instances: %w", err)
	}
	instances := &metav1.PartialObjectMetadataList{}
	instances.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(kind + "List"))
	if err := c.List(ctx, instances, client.Limit(1)); err != nil {
		return fmt.Errorf("look for instances: %w", err)
	}
	if len(instances.Items) > 0 {
		first := instances.Items[0]
		return fmt.Errorf("it has instances, such as %s: delete them first, or keep the definition", strings.TrimPrefix(first.Namespace+"/"+first.Name, "/"))
	}
	uid, version := crd.GetUID(), crd.GetResourceVersion()
	return client.IgnoreNotFound(c.Delete(ctx, crd, client.Preconditions{UID: &uid, ResourceVersion: &version}))
}

// newComponent returns an empty component.
func (o Options[T]) newComponent() T { return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T) }

// kind returns the kind of the components.
func (o Options[T]) kind(scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o.newComponent(), scheme)
}
