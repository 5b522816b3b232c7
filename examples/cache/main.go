// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Cache is an operator with a generator in Go: it deploys memcached for each Cache.
package main

import (
	"context"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
)

const name = "cache.example.com"

const port = 11211

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

// setUp adds the reconciler.
func setUp(manager ctrl.Manager) error {
	generator := manifests.WithDigest(manifests.For(generate), "1") // another digest says that the code makes other objects
	return component.NewReconciler[*Cache](name, generator, component.ReconcilerOptions{}).
		WithPostReconcileHook(setEndpoint).
		SetupWithManager(manager)
}

// generate returns the dependent objects of a Cache.
func generate(_ context.Context, namespace, cache string, spec *CacheSpec) ([]client.Object, error) {
	labels := map[string]string{"app.kubernetes.io/name": "cache", "app.kubernetes.io/instance": cache}
	pod := applycorev1.PodSpec().WithContainers(applycorev1.Container().
		WithName("memcached").WithImage("registry.example.com/memcached:1.6").
		WithArgs(fmt.Sprintf("--memory-limit=%d", spec.Megabytes)).
		WithPorts(applycorev1.ContainerPort().WithContainerPort(port)))
	return manifests.FromApplyConfigurations(
		applyappsv1.Deployment(cache, namespace).WithLabels(labels).
			// The selector of a Deployment cannot be changed.
			WithAnnotations(map[string]string{name + "/" + v1alpha1.AnnotationUpdatePolicy: "recreate-on-immutable"}).
			WithSpec(applyappsv1.DeploymentSpec().
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(labels)).
				WithTemplate(applycorev1.PodTemplateSpec().WithLabels(labels).WithSpec(pod))),
		applycorev1.Service(cache, namespace).WithLabels(labels).
			// The name resolves before the first pod starts.
			WithAnnotations(map[string]string{name + "/" + v1alpha1.AnnotationApplyOrder: "-1"}).
			WithSpec(applycorev1.ServiceSpec().WithSelector(labels).WithPorts(applycorev1.ServicePort().WithPort(port))),
	)
}

// setEndpoint is a hook that runs when all dependent objects are applied.
func setEndpoint(ctx context.Context, _ client.Client, cache *Cache) error {
	target, err := component.ClientFromContext(ctx)
	if err != nil {
		return err
	}
	service := &corev1.Service{}
	if err := target.Get(ctx, client.ObjectKeyFromObject(cache), service); err != nil {
		return err
	}
	cache.Status.Endpoint = fmt.Sprintf("%s.%s.svc:%d", service.Name, service.Namespace, port)
	return nil
}
