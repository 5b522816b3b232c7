// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{Cluster: true})) }

func TestACacheIsADeploymentAndAService(t *testing.T) {
	objects, err := manifests.Generate(t.Context(), manifests.For(generate), "prod", "home", component.ParametersOf(&CacheSpec{Megabytes: 64}))
	if err != nil || len(objects) != 2 || objects[0].GetName() != "home" || objects[1].GetNamespace() != "prod" {
		t.Errorf("the objects are %v, and the error %v", objects, err)
	}
}

func TestTheCacheLives(t *testing.T) {
	config := env.Shared(t).Config()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"config/crd"}}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, schemeBuilder.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	o := componenttest.Operator[*Cache]{Config: config, Scheme: scheme, SetUp: setUp}
	main := &Cache{Spec: CacheSpec{Megabytes: 64}}
	main.Name = "main"
	o.TestLifecycle(t, main, func(c *Cache) { c.Spec.Megabytes = 128 })
	installed := o.Install(t, main)
	if want := "main." + installed.Namespace + ".svc:11211"; installed.Component.Status.Endpoint != want {
		t.Errorf("endpoint %q, want %q", installed.Component.Status.Endpoint, want)
	}
}
