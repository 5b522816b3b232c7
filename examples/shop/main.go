// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The shop is an operator for web shops: it deploys what the chart renders for a Shop.
package main

import (
	"context"
	"embed"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

const name = "shop.example.com"

//go:embed all:chart
var chart embed.FS

func main() {
	ctrl.SetLogger(zap.New())
	options := ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}}
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), options); err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

// run runs the operator until the context ends.
func run(ctx context.Context, config *rest.Config, options ctrl.Options) error {
	options.Scheme = runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, shopv1alpha1.SchemeBuilder.AddToScheme} {
		if err := add(options.Scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(config, options)
	if err != nil {
		return err
	}
	generator, err := helm.New(chart, "chart", helm.Options{})
	if err != nil {
		return err
	}
	shops := component.NewReconciler[*shopv1alpha1.Shop](name, generator, component.ReconcilerOptions{})
	if err := shops.SetupWithManager(manager); err != nil {
		return err
	}
	return manager.Start(ctx)
}
