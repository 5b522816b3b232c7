// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"

	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

func TestTheRightsOfAnOperator(t *testing.T) {
	kinds := Merge(append(append(builtIn("Deployment"), builtIn("ClusterRole")...), append(builtIn("RoleBinding"),
		Kind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor", Resource: "servicemonitors", Namespaced: true, Optional: true, Origins: []string{"templates/a.yaml", "templates/b.yaml", "templates/c.yaml"}},
		Kind{Group: "example.com", Kind: "Gear", Resource: "gears", Defined: true})...), nil)
	got, err := Operator{
		Account: "shop-operator", Group: "shop.example.com", Resource: "shops", Namespace: "{{ .Release.Namespace }}",
	}.YAML(kinds)
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/rbac.yaml"
	if manifeststest.Update() {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || string(want) != got {
		t.Errorf("%s is not what is written (error %v); if that is meant, run the test with -update:\n%s", file, err, got)
	}
}

func TestRightsInOneNamespaceExcludeKindsWithoutNamespace(t *testing.T) {
	o := Operator{Account: "a", Group: "g", Resource: "r", Namespace: "n", Namespaced: true}
	_, err := o.YAML(append(builtIn("ClusterRole"), append(builtIn("Deployment"), builtIn("Namespace")...)...))
	if err == nil || !strings.Contains(err.Error(), "have no namespace: ClusterRole, Namespace") {
		t.Errorf("got %v", err)
	}
	text, err := o.YAML(builtIn("Deployment"))
	cluster := strings.Count(text, "kind: ClusterRole\n")
	if err != nil || cluster != 1 || !strings.Contains(text, "resourceNames: [kube-system]") || !strings.Contains(text, `resources: ["deployments"]`) {
		t.Errorf("error %v, got\n%s", err, text)
	}
}

// The server knows the plural names and the scopes of all built-in kinds as this package does.
func TestBuiltInKindsAreThoseOfTheServer(t *testing.T) {
	client, err := discovery.NewDiscoveryClientForConfig(env.Shared(t).Config())
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") {
				continue
			}
			got := kindIn(list.GroupVersion, resource.Kind)
			if got.Optional || got.Resource != resource.Name || got.Namespaced != resource.Namespaced {
				t.Errorf("%s %s: is %+v, want resource %s, namespaced %t", list.GroupVersion, resource.Kind, got, resource.Name, resource.Namespaced)
			}
			compared++
		}
	}
	if compared < 50 {
		t.Errorf("only %d kinds were compared", compared)
	}
}
