// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Bucket is an operator for an HTTP service that keeps buckets.
package main

import (
	"flag"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/examples/bucket/api/v1alpha1"
	"github.com/corbel-run/corbel/examples/bucket/service"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
)

const name = "bucket.example.com"

func main() {
	url := flag.String("service", "http://127.0.0.1:8095", "the URL of the bucket service")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*url); err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

func run(url string) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.SchemeBuilder.AddToScheme(scheme); err != nil {
		return err
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	if err := setup(manager, &service.Client{URL: url, HTTP: &http.Client{Timeout: 10 * time.Second}}); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func setup(manager ctrl.Manager, api *service.Client) error {
	handler := &welcoming{
		Handler: external.New(&buckets{api}, external.Options{}),
		service: api, client: manager.GetClient(), reader: manager.GetAPIReader(), pod: os.Getenv("POD_UID"),
	}
	return lifecycle.SetupWithManager(manager, handler, lifecycle.Options[*v1alpha1.Bucket]{Name: name})
}
