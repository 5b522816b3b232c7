// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// homeScenarios delete the namespace that the component lives in: the server
// deletes the component with everything else, in any order.
var homeScenarios = []*scenario{
	{
		name:      "delete the namespace of a component",
		installed: map[string][]string{"main": scattered},
		act:       deleteHome,
		gone:      []string{"main"},
		after:     homeIsGone,
	},
	{
		name:      "delete the namespace of a component that acts as a service account",
		existing:  []string{deployer},
		installed: map[string][]string{"main": scattered},
		settings:  func(_ string, spec *BundleSpec) { spec.ServiceAccountName = "deployer" },
		act:       deleteHome,
		gone:      []string{"main"},
		after:     homeIsGone,
	},
	{
		name:      "delete the namespace of a component with a type and an instance",
		installed: map[string][]string{"main": machine},
		act:       deleteHome,
		gone:      []string{"main"},
		after:     homeIsGone,
	},
}

// scattered are objects in the namespace of the component, in another one, and in none.
var scattered = []string{
	configMap("a", "1"), secret("b", "1"), configMap("$NS-more/c", "1", "apply-order", "1"),
	head("rbac.authorization.k8s.io/v1", "ClusterRole", "$ID", nil) + "rules: []\n",
}

// deployer is a service account that may do everything.
var deployer = serviceAccount("deployer") + "---\n" + head("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "$ID", nil) +
	"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}\n" +
	"subjects: [{kind: ServiceAccount, name: deployer, namespace: $NS}]\n"

func deleteHome(t testing.TB, f *fixture) {
	t.Helper()
	if err := f.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}); err != nil {
		t.Fatal(err)
	}
}

func homeIsGone(t testing.TB, f *fixture) {
	t.Helper()
	namespaceIs("$NS", false)(t, f)
	namespaceIs("$NS-more", false)(t, f)
}
