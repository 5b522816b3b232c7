// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The shop is an operator for web shops: it deploys what the chart renders for a Shop. With the
// argument plan it prints what it would do for the Shop on its standard input.
package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

const name = "shop.example.com"

//go:embed all:chart
var chart embed.FS

func main() {
	ctrl.SetLogger(zap.New())
	ctx, config := ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie()
	options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	var err error
	if len(os.Args) > 1 && os.Args[1] == "plan" {
		err = plan(ctx, config, options, os.Stdin, os.Stdout)
	} else {
		err = run(ctx, config, options)
	}
	if err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

// run runs the operator until the context ends.
func run(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	manager, _, err := setUp(config, options)
	if err != nil {
		return err
	}
	return manager.Start(ctx)
}

// plan prints what the operator would do for a Shop, which it reads as YAML or JSON.
func plan(ctx context.Context, config *rest.Config, options ctrl.Options, in io.Reader, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	manager, shops, err := setUp(config, options) // a manager that is not started writes nothing
	if err != nil {
		return err
	}
	shop, err := completed(ctx, manager.GetClient(), text)
	if err != nil {
		return err
	}
	planned, err := shops.Plan(ctx, component.PlanRequest[*shopv1alpha1.Shop]{Key: client.ObjectKeyFromObject(shop), Edited: shop})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "revision %d of Shop %s/%s:\n%s", planned.Revision, planned.Namespace, planned.Name, planned)
	return err
}

// completed returns a Shop as the server would store it. Its defaults are added to the text, because the type
// sends each field, also one that is not set.
func completed(ctx context.Context, c client.Client, text []byte) (*shopv1alpha1.Shop, error) {
	edited := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(text, &edited.Object); err != nil {
		return nil, fmt.Errorf("read the Shop: %w", err)
	}
	// It may be the answer to a dry run, of an object that does not exist, or that was changed since.
	edited.SetManagedFields(nil)
	edited.SetResourceVersion("")
	edited.SetUID("")
	if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(edited), client.DryRunAll, client.FieldOwner("shop-plan"), client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("complete the Shop: %w", err)
	}
	shop := &shopv1alpha1.Shop{}
	return shop, runtime.DefaultUnstructuredConverter.FromUnstructured(edited.Object, shop)
}

// setUp returns the manager and the reconciler in it.
func setUp(config *rest.Config, options ctrl.Options) (ctrl.Manager, *component.Reconciler[*shopv1alpha1.Shop], error) {
	options.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, shopv1alpha1.SchemeBuilder.AddToScheme} {
		if err := add(options.Scheme); err != nil {
			return nil, nil, err
		}
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, nil, err
	}
	generator, err := helm.New(chart, "chart", helm.Options{})
	if err != nil {
		return nil, nil, err
	}
	shops := component.NewReconciler[*shopv1alpha1.Shop](name, generator, component.ReconcilerOptions{})
	return manager, shops, shops.SetupWithManager(manager)
}
