// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Notify is an operator that notifies an HTTP endpoint of the ConfigMaps that bear the
// label notify.example.com/watch, whatever its value.
package main

import (
	"errors"
	"flag"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/changes"
)

const (
	name       = "notify.example.com"
	watchLabel = name + "/watch"
	finalizer  = name + "/notified"
)

func main() {
	endpoint := flag.String("endpoint", "", "the URL that messages are posted to")
	namespace := flag.String("lease-namespace", "", "the namespace of the lease, if not that of the pod")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(*endpoint, *namespace); err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

func run(endpoint, leaseNamespace string) error {
	options, err := managerOptions(leaseNamespace)
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), options)
	if err != nil {
		return err
	}
	if err := setup(manager, endpoint); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// managerOptions make a manager that sees the labelled ConfigMaps only.
func managerOptions(leaseNamespace string) (ctrl.Options, error) {
	watched, err := labels.NewRequirement(watchLabel, selection.Exists, nil)
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}: {Label: labels.NewSelector().Add(*watched)},
		}},
		// One process at a time, and the next one at once when it ends.
		LeaderElection: true, LeaderElectionID: name, LeaderElectionNamespace: leaseNamespace, LeaderElectionReleaseOnCancel: true,
	}, nil
}

// setup adds the controller.
func setup(manager ctrl.Manager, endpoint string) error {
	if endpoint == "" {
		return errors.New("the flag -endpoint is missing")
	}
	notifier := &notifier{endpoint: endpoint, client: &http.Client{Timeout: 10 * time.Second}}
	reconciler := &changes.OpinionatedReconciler{
		Reconciler: &changes.TypedReconciler[*corev1.ConfigMap]{ReconcileFunc: notifier.notify},
		Finalizer:  finalizer,
	}
	return changes.NewController("notify", &corev1.ConfigMap{}, reconciler, changes.Options{}).SetupWithManager(manager)
}
