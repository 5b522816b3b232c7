// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Dashboard is an operator that builds a kustomization for each Dashboard.
package main

import (
	"embed"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
)

const name = "dashboard.example.com"

//go:embed all:manifests
var files embed.FS

func main() {
	ctrl.SetLogger(zap.New())
	if err := run(); err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

func run() error {
	scheme := runtime.NewScheme()
	if err := schemeBuilder.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	if err := setUp(manager); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// setUp adds the reconciler. The files are Go templates before they are built.
func setUp(manager ctrl.Manager) error {
	generator, err := kustomize.New(files, "manifests/overlay", kustomize.Options{Templates: &kustomize.Templates{}})
	if err != nil {
		return err
	}
	return component.NewReconciler[*Dashboard](name, generator, component.ReconcilerOptions{}).SetupWithManager(manager)
}
