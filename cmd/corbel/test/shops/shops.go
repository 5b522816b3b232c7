// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package shops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/env"
)

const (
	// OperatorName is the name of the operator.
	OperatorName = "shop.example.com"
	// OperatorNamespace is where the operator has its lease and its digest key.
	OperatorNamespace = "shop-system"
	// Namespace is that of the Shops.
	Namespace = "market"
	// Canary is the value of the Secrets of the Shops.
	Canary = "a very secret canary"
)

// Client returns a client of an administrator that knows Shops.
func Client(e *env.Environment) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), shopv1alpha1.SchemeBuilder.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	config := e.Config()
	config.QPS, config.Burst = -1, -1
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// Operator returns a manager with the operator, which takes over Helm releases, and is elected as a leader. It installs the
// type of a Shop and the namespaces. The repository is the path of its root. Generators add further dependents.
func Operator(ctx context.Context, e *env.Environment, c client.Client, repository string, more ...manifests.Generator) (ctrl.Manager, error) {
	example := filepath.Join(repository, "examples/shop")
	if _, err := envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{filepath.Join(example, "config/crd/shop.example.com_shops.yaml")}}); err != nil {
		return nil, err
	}
	for _, namespace := range []string{Namespace, OperatorNamespace} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		if err := client.IgnoreAlreadyExists(c.Create(ctx, object)); err != nil {
			return nil, err
		}
	}
	lock, err := component.NewLeaderLock(e.Config(), OperatorNamespace, OperatorName)
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(e.Config(), ctrl.Options{
		Scheme: c.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		LeaderElection: true, LeaderElectionResourceLockInterface: lock, LeaderElectionReleaseOnCancel: true,
		// The machine may be busy, and the API server may go away for a while.
		LeaseDuration: new(time.Minute), RenewDeadline: new(50 * time.Second),
	})
	if err != nil {
		return nil, err
	}
	generator, err := helm.New(os.DirFS(example), "chart", helm.Options{})
	if err != nil {
		return nil, err
	}
	if len(more) > 0 {
		generator = manifests.Join(append(more, generator)...)
	}
	shops := component.NewReconciler[*shopv1alpha1.Shop](OperatorName, generator, component.ReconcilerOptions{
		Users:      component.UserOptions{AdoptHelmReleases: true},
		Controller: component.ControllerOptions{LeaderLock: lock},
		Operator:   component.OperatorOptions{OperatorNamespace: new(OperatorNamespace)},
	})
	return manager, shops.SetupWithManager(manager)
}

// New returns a Shop as most users want it.
func New(name string) *shopv1alpha1.Shop {
	return &shopv1alpha1.Shop{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name},
		Spec: shopv1alpha1.ShopSpec{ShopValues: shopv1alpha1.ShopValues{
			Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: name + "-database",
			Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
		}},
	}
}

// CreateSecret creates the Secret of a Shop, without which its pods do not start.
func CreateSecret(ctx context.Context, c client.Client, name string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: name + "-database"}}
	secret.StringData = map[string]string{"password": Canary}
	return c.Create(ctx, secret)
}

// Create creates a Shop with its Secret, and waits until it is Ready.
func Create(ctx context.Context, c client.Client, name string) error {
	if err := errors.Join(CreateSecret(ctx, c, name), c.Create(ctx, New(name))); err != nil {
		return err
	}
	_, err := AwaitReady(ctx, c, name)
	return err
}

// AwaitReady waits until a Shop is Ready in its generation, and returns it. Conditions that contradict each other are errors.
func AwaitReady(ctx context.Context, c client.Client, name string) (*shopv1alpha1.Shop, error) {
	s := New(name)
	err := env.Await(ctx, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(s), s); err != nil {
			return err
		}
		if s.Status.IsReady() && s.Status.ObservedGeneration == s.Generation {
			return nil
		}
		state, reason, message := s.Status.GetState()
		return fmt.Errorf("the Shop is %s (%s: %s), generation %d, observed %d", state, reason, message, s.Generation, s.Status.ObservedGeneration)
	})
	if err != nil {
		return nil, err
	}
	return s, errors.Join(conditionstest.Errors(conditions.For(s, &s.Status.Conditions))...)
}
