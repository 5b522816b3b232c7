// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rbacrules

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
	deployment, monitor := builtIn("Deployment"), Kind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor", Resource: "servicemonitors", Namespaced: true, Optional: true, Origins: []string{"templates/a.yaml", "templates/b.yaml", "templates/c.yaml"}}
	all := Merge(append(append(deployment, builtIn("ClusterRole")...), append(builtIn("RoleBinding"), monitor,
		Kind{Group: "example.com", Kind: "Gear", Resource: "gears", Defined: true})...), nil)
	inNamespaces := Merge(append(deployment, append(builtIn("RoleBinding"), monitor)...), nil)
	for file, test := range map[string]struct {
		operator Operator
		kinds    []Kind
	}{
		"rbac.yaml":                        {Operator{}, all},
		"rbac-namespaces.yaml":             {Operator{CreatesNamespaces: true}, deployment},
		"rbac-namespaced.yaml":             {Operator{Namespaced: true}, inNamespaces},
		"rbac-impersonate.yaml":            {Operator{Deployer: "deployer"}, inNamespaces},
		"rbac-impersonate-namespaced.yaml": {Operator{Deployer: "deployer", Namespaced: true}, inNamespaces},
	} {
		t.Run(file, func(t *testing.T) {
			o := test.operator
			o.Account, o.Group, o.Resource, o.Namespace = "shop-operator", "shop.example.com", "shops", "{{ .Release.Namespace }}"
			got, err := o.YAML(test.kinds)
			if err != nil {
				t.Fatal(err)
			}
			file := "testdata/" + file
			if manifeststest.Update() {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || string(want) != got {
				t.Errorf("%s is not what is written (error %v); if that is meant, run the test with -update:\n%s", file, err, got)
			}
			if o.Namespaced && strings.Contains(got, "ClusterRole\n") {
				t.Error("it has a ClusterRole")
			}
		})
	}
}

func TestRightsInNamespacesExcludeKindsWithoutNamespace(t *testing.T) {
	for want, o := range map[string]Operator{"--namespaced": {Namespaced: true}, "--impersonate": {Deployer: "deployer"}} {
		_, err := o.YAML(append(builtIn("ClusterRole"), append(builtIn("Deployment"), builtIn("Namespace")...)...))
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), ": ClusterRole, Namespace") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestRolesAndBindingsEscalate(t *testing.T) {
	role, read := builtIn("Role"), builtIn("Role")
	read[0].Read = true
	for name, test := range map[string]struct {
		kinds []Kind
		want  bool
	}{
		"a role": {role, true}, "a binding": {builtIn("ClusterRoleBinding"), true}, "a role that is read": {read, false}, "a workload": {builtIn("Deployment"), false},
	} {
		if got := Escalates(test.kinds); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
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
