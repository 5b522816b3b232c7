// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// The shop is an operator for web shops: it turns a Shop into its workloads.
package main

import (
	"embed"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
)

const name = "shop.example.com"

//go:embed all:templates
var templates embed.FS

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, shopv1alpha1.SchemeBuilder.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:           scheme,
		LeaderElectionID: name,
		Metrics:          metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	generator, err := gotemplate.New(templates, "templates", gotemplate.Options{})
	if err != nil {
		return err
	}
	reconciler := component.NewReconciler[*shopv1alpha1.Shop](name, generator, component.ReconcilerOptions{})
	if err := reconciler.SetupWithManager(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}
