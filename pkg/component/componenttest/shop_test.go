// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

// shopFolder is a chart with hooks, volumes, Deployments, and a CustomResourceDefinition
// together with an instance of it.
var shopFolder = filepath.Join("..", "..", "..", "examples", "shop")

func shops(t *testing.T) componenttest.Operator[*shopv1alpha1.Shop] {
	t.Helper()
	config := env.Shared(t).Config()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(shopFolder, "config", "crd")}}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, shopv1alpha1.SchemeBuilder.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return componenttest.Operator[*shopv1alpha1.Shop]{
		Config: config, Scheme: scheme,
		SetUp: func(mgr ctrl.Manager) error {
			generator, err := helm.New(os.DirFS(shopFolder), "chart", helm.Options{})
			if err != nil {
				return err
			}
			return component.NewReconciler[*shopv1alpha1.Shop]("shop.example.com", generator, component.ReconcilerOptions{}).SetupWithManager(mgr)
		},
	}
}

func shop() *shopv1alpha1.Shop {
	return &shopv1alpha1.Shop{
		ObjectMeta: metav1.ObjectMeta{Name: "corner"},
		Spec: shopv1alpha1.ShopSpec{
			TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: time.Minute}},
			ShopValues: shopv1alpha1.ShopValues{
				Replicas: 1, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: "corner-database",
				Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
			},
		},
	}
}

// closeCache removes a sub-chart and changes what is left.
func closeCache(s *shopv1alpha1.Shop) { s.Spec.Greeting, s.Spec.Cache.Enabled = "Closing", false }

// TestTheShop runs one after the other what shares the objects that are one for the cluster.
func TestTheShop(t *testing.T) {
	t.Parallel()
	o := shops(t)
	t.Run("lifecycle and rights", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(shopFolder, "config", "rbac.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			t.Fatal(err)
		}
		o.TestRights(t, shop(), closeCache, role.Rules)
	})
	t.Run("crashes", func(t *testing.T) { o.TestCrashes(t, shop(), closeCache, every(67, 1)) })
	if isWhole() {
		t.Run("faults", func(t *testing.T) { o.TestFaults(t, shop(), closeCache) })
	}
	t.Run("upgrade", func(t *testing.T) { o.TestUpgrade(t, o, shop()) })
	t.Run("a hook that leaves something", func(t *testing.T) {
		setUp := o.SetUp
		o.SetUp = func(mgr ctrl.Manager) error {
			return errors.Join(setUp(mgr), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
				return mgr.GetClient().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shop-trace"}})
			})))
		}
		o.Timeout = 20 * time.Second
		check(t, func(t testing.TB) { o.TestLifecycle(t, shop(), nil) }).wants(t, "there is still: ConfigMap default/shop-trace")
	})
}
