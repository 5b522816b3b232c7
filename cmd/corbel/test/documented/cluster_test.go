// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
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
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/operator"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(env.Main(m, env.Options{Cluster: true}))
}

// exampleKinds are the kinds in the documents that no example of the repository defines.
var exampleKinds = []schema.GroupVersionKind{
	{Group: "example.com", Version: "v1", Kind: "Greeting"},
	{Group: "example.com", Version: "v1", Kind: "Agent"},
	{Group: "example.com", Version: "v1", Kind: "Mailer"},
	{Group: "queue.example.com", Version: "v1", Kind: "Queue"},
	{Group: "store.example.com", Version: "v1alpha1", Kind: "Store"}, // of the tutorial
	{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
	{Group: "helm.toolkit.fluxcd.io", Version: "v2", Kind: "HelmRelease"},
	{Group: "argoproj.io", Version: "v1alpha1", Kind: "Application"},
	{Group: "monitoring.coreos.com", Version: "v1", Kind: "PrometheusRule"},
}

// cluster is a cluster with the objects of testdata/cluster.yaml.
type cluster struct {
	client              client.Client
	kubectl, kubeconfig string
	files               map[string]string   // that commands name
	shops               []shopv1alpha1.Shop // as they were when they became ready
}

var prepared struct {
	sync.Mutex
	*cluster
	err error
}

// sharedCluster returns the cluster of all tests. They change nothing in it.
func sharedCluster(t *testing.T) *cluster {
	t.Helper()
	e := env.Shared(t)
	prepared.Lock()
	defer prepared.Unlock()
	if prepared.cluster == nil && prepared.err == nil {
		prepared.cluster, prepared.err = prepare(context.WithoutCancel(t.Context()), e)
	}
	if prepared.err != nil {
		t.Fatal(prepared.err)
	}
	for _, shop := range prepared.shops {
		conditionstest.Check(t, conditions.For(&shop, &shop.Status.Conditions))
	}
	return prepared.cluster
}

func prepare(ctx context.Context, e *env.Environment) (*cluster, error) {
	definitions := filepath.Join(root, "examples/shop/config/crd")
	if _, err := envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{definitions, filepath.Join(root, "examples/shop/chart/crds")}, CRDs: exampleDefinitions()}); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), shopv1alpha1.SchemeBuilder.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(e.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	content, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		return nil, err
	}
	objects, err := decode(content)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := c.Create(ctx, object); err != nil {
			return nil, err
		}
	}
	shops, err := operate(ctx, e, scheme, c)
	if err != nil {
		return nil, err
	}
	definition, err := os.ReadFile(filepath.Join(definitions, "shop.example.com_shops.yaml"))
	if err != nil {
		return nil, err
	}
	const shop = "apiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: {name: corner, namespace: market}\nspec: {databaseSecret: corner-database}\n"
	return &cluster{c, e.Program("kubectl"), e.Kubeconfig(), map[string]string{
		"config/crd/shops.yaml": string(definition), "deploy/files/shop.example.com_shops.yaml": string(definition),
		"ops/alerts.yaml":    "apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: shop-operator}\n",
		"ops/dashboard.json": "{}", "ops/argocd-health.lua": "return nil", "ops/kube-state-metrics.yaml": "spec: {}",
		"sample.yaml": shop, "shop.yaml": shop, "corner.yaml": shop, "paris.kubeconfig": "apiVersion: v1\nkind: Config\n",
	}, shops}, nil
}

// exampleDefinitions returns the definitions of the kinds of examples. They allow all fields.
func exampleDefinitions() []*apiextensionsv1.CustomResourceDefinition {
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range exampleKinds {
		d := &apiextensionsv1.CustomResourceDefinition{}
		singular := strings.ToLower(kind.Kind)
		d.Name = singular + "s." + kind.Group
		d.Spec.Group, d.Spec.Scope = kind.Group, apiextensionsv1.NamespaceScoped
		d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: kind.Kind, ListKind: kind.Kind + "List"}
		d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: kind.Version, Served: true, Storage: true,
			Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
		}}
		definitions = append(definitions, d)
	}
	return definitions
}

// decode returns the objects of a stream of documents.
func decode(content []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// operate runs the operator of the example until both Shops are ready. The chart is without its definition, which is
// there: it could belong to one of them only. Then the conditions are added that other documents speak of.
func operate(ctx context.Context, e *env.Environment, scheme *runtime.Scheme, c client.Client) ([]shopv1alpha1.Shop, error) {
	generator, err := helm.New(os.DirFS(filepath.Join(root, "examples/shop/chart")), ".", helm.Options{CRDs: helm.CRDsNever})
	if err != nil {
		return nil, err
	}
	manager, err := ctrl.NewManager(e.Config(), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		return nil, err
	}
	shops := component.NewReconciler[*shopv1alpha1.Shop]("shop.example.com", generator, component.ReconcilerOptions{})
	if err := shops.SetupWithManager(manager); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	list := &shopv1alpha1.ShopList{}
	var last error
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := c.List(ctx, list); err != nil {
			return false, nil // the next one says more
		}
		last = nil
		for i := range list.Items {
			if status := &list.Items[i].Status; !status.IsReady() {
				state, reason, message := status.GetState()
				last = fmt.Errorf("Shop %s is %s (%s): %s", list.Items[i].Name, state, reason, message)
			}
		}
		return last == nil, nil
	})
	stop()
	if err := errors.Join(err, last, <-ended); err != nil {
		return nil, err
	}
	if err := addCondition(ctx, c, schema.GroupVersionKind{Group: "shop.example.com", Version: "v1alpha1", Kind: "Shop"}, "main", "Drifted"); err != nil {
		return nil, err
	}
	return list.Items, addCondition(ctx, c, exampleKinds[0], "hello", "Ready")
}

// addCondition adds a condition that is true to an object of namespace default.
func addCondition(ctx context.Context, c client.Client, kind schema.GroupVersionKind, name, condition string) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	if err := c.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
		return err
	}
	conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
	if err != nil {
		return err
	}
	conditions = append(conditions, map[string]any{
		"type": condition, "status": "True", "reason": condition, "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
	})
	if err := unstructured.SetNestedSlice(object.Object, conditions, "status", "conditions"); err != nil {
		return err
	}
	return c.Status().Update(ctx, object)
}

// shopProgram returns the commands of the operator of the example.
func shopProgram() *cobra.Command {
	return operator.Options[*shopv1alpha1.Shop]{Name: "shop"}.Command()
}
