// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

const (
	operatorUser = "shop-operator"
	patience     = time.Minute
)

// bed is a namespace in a cluster in which the operator runs, with the role that it is
// shipped with and no other.
type bed struct {
	*testing.T
	ctx       context.Context // also good for the cleanup
	client    client.WithWatch
	namespace string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := openBed(t)
	b.grant()
	b.start(operatorUser, ctrl.Options{})
	return b
}

// openBed makes a bed without an operator.
func openBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{T: t, ctx: context.WithoutCancel(t.Context())}
	e := env.Shared(t)
	_, err := envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{"config/crd"}})
	b.check(err)
	scheme := runtime.NewScheme()
	b.check(errors.Join(clientgoscheme.AddToScheme(scheme), shopv1alpha1.SchemeBuilder.AddToScheme(scheme)))
	b.client, err = client.NewWithWatch(e.Config(), client.Options{Scheme: scheme})
	b.check(err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	b.check(b.client.Create(b.ctx, namespace))
	b.namespace = namespace.Name
	return b
}

// grant gives the operator its role.
func (b *bed) grant() {
	b.Helper()
	data, err := os.ReadFile("config/rbac.yaml")
	b.check(err)
	role := &rbacv1.ClusterRole{}
	b.check(yaml.UnmarshalStrict(data, role))
	b.check(client.IgnoreAlreadyExists(b.client.Create(b.ctx, role)))
	b.check(client.IgnoreAlreadyExists(b.client.Create(b.ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: operatorUser}},
	})))
}

// skipNames is for controllers of one name in each test.
var skipNames = config.Controller{SkipNameValidation: new(true)}

// run runs the operator until the context ends.
func run(ctx context.Context, config *rest.Config, managerOptions ctrl.Options) error {
	scheme, err := options().Scheme()
	if err != nil {
		return err
	}
	managerOptions.Scheme = scheme
	manager, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return err
	}
	if _, err := options().SetUp(manager); err != nil {
		return err
	}
	return manager.Start(ctx)
}

// start starts the operator as a user; the end of the test ends it.
func (b *bed) start(user string, options ctrl.Options) {
	b.Helper()
	options.Metrics, options.Controller = metricsserver.Options{BindAddress: "0"}, skipNames
	cfg, err := env.Shared(b.T).ConfigFor(user)
	b.check(err)
	ctx, cancel := context.WithCancel(b.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, cfg, options)
	}()
	b.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("the operator ended: %v", err)
		}
	})
	b.Cleanup(b.delete) // its type is one for the cluster
}

func (b *bed) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bed) until(what string, check func() error) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("waited in vain until %s: %v", what, err)
		}
	}
}

// shop is a Shop as most users want it. It is looked at often, so that what would
// run too often does.
func (b *bed) shop() *shopv1alpha1.Shop {
	return &shopv1alpha1.Shop{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "corner"},
		Spec: shopv1alpha1.ShopSpec{
			RequeueSpec: component.RequeueSpec{RequeueInterval: &types.Duration{Duration: time.Second}},
			TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: patience}},
			ShopValues: shopv1alpha1.ShopValues{
				Replicas: 2, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: "corner-database",
				Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
			},
		},
	}
}

func (b *bed) get() *shopv1alpha1.Shop {
	b.Helper()
	shop := b.shop()
	b.check(b.client.Get(b.ctx, client.ObjectKeyFromObject(shop), shop))
	return shop
}

// change changes the spec as its user would.
func (b *bed) change(change func(*shopv1alpha1.ShopSpec)) {
	b.Helper()
	shop := b.get()
	before := shop.DeepCopy()
	change(&shop.Spec)
	b.check(b.client.Patch(b.ctx, shop, client.MergeFrom(before)))
}

func (b *bed) untilReady() {
	b.Helper()
	b.until("the Shop is Ready", func() error {
		shop := b.get()
		if shop.Status.IsReady() && shop.Status.ObservedGeneration == shop.Generation {
			return nil
		}
		state, reason, message := shop.Status.GetState()
		return fmt.Errorf("it is %s (%s: %s), generation %d, observed %d", state, reason, message, shop.Generation, shop.Status.ObservedGeneration)
	})
	b.checkConditions()
}

// untilSaid waits until the Shop is not Ready, with a message that holds all parts.
func (b *bed) untilSaid(parts ...string) {
	b.Helper()
	b.until("the Shop says what is wrong", func() error {
		shop := b.get()
		state, reason, message := shop.Status.GetState()
		for _, part := range parts {
			if shop.Status.IsReady() || !strings.Contains(message, part) {
				return fmt.Errorf("it is %s (%s: %s), want %q", state, reason, message, part)
			}
		}
		return nil
	})
	b.checkConditions()
}

func (b *bed) checkConditions() {
	b.Helper()
	shop := b.get()
	conditionstest.Check(b, conditions.For(shop, &shop.Status.Conditions))
}

func (b *bed) delete() {
	b.Helper()
	shop := b.shop()
	b.check(client.IgnoreNotFound(b.client.Delete(b.ctx, shop)))
	b.until("the Shop is gone", func() error {
		err := b.client.Get(b.ctx, client.ObjectKeyFromObject(shop), shop)
		if apierrors.IsNotFound(err) {
			return nil
		}
		_, reason, message := shop.Status.GetState()
		return errors.Join(err, fmt.Errorf("%s: %s", reason, message))
	})
}

// generations are those of the Deployments.
func (b *bed) generations() map[string]int64 {
	b.Helper()
	list := &appsv1.DeploymentList{}
	b.check(b.client.List(b.ctx, list, client.InNamespace(b.namespace)))
	generations := map[string]int64{}
	for _, d := range list.Items {
		generations[d.Name] = d.Generation
	}
	return generations
}
