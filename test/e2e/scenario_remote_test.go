// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
)

// remoteScenarios are about components with dependents in another cluster.
var remoteScenarios = []*scenario{
	{
		name:     "install into another cluster",
		remote:   true,
		settings: intoTheFarCluster,
		desired:  map[string][]string{"main": lifeOne},
		owned:    lifeScenarios[0].owned,
	},
	{
		name:      "upgrade in another cluster with rotated credentials",
		remote:    true,
		settings:  intoTheFarCluster,
		installed: map[string][]string{"main": lifeOne},
		desired:   map[string][]string{"main": lifeTwo},
		meanwhile: func(t testing.TB, f *fixture) { f.rotate(t, "second") },
		owned:     lifeScenarios[1].owned,
	},
	{
		name:      "delete in another cluster with rotated credentials",
		remote:    true,
		settings:  intoTheFarCluster,
		installed: map[string][]string{"main": lifeOne},
		meanwhile: func(t testing.TB, f *fixture) { f.rotate(t, "second") },
	},
	{
		// The credentials go with the namespace, so nothing can be deleted; that
		// is reported, and nothing is dropped from the inventory until a user abandons it.
		name:      "delete the namespace of a component in another cluster",
		remote:    true,
		settings:  intoTheFarCluster,
		installed: map[string][]string{"main": {configMap("a", "1"), secret("b", "1")}},
		act:       deleteHomeAfterItsCredentials,
		ends:      map[string]string{"main": vocabulary.ReasonDeletionBlocked},
		owned:     []string{"ConfigMap $NS/a", "Secret $NS/b"},
		after:     abandon,
	},
}

func intoTheFarCluster(_ string, spec *BundleSpec) {
	spec.KubeConfig = &component.KubeConfigSpec{SecretRef: component.SecretKeyReference{Name: "far"}}
}

// deleteHomeAfterItsCredentials is what the namespace controller does if it comes to
// the Secret before the operator has read it.
func deleteHomeAfterItsCredentials(t testing.TB, f *fixture) {
	t.Helper()
	far := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "far"}}
	if err := f.Delete(t.Context(), far); err != nil {
		t.Fatal(err)
	}
	deleteHome(t, f)
}

// abandon gives up a component with dependents that cannot be reached.
func abandon(t testing.TB, f *fixture) {
	t.Helper()
	bundle := f.named("main")
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+reconcilerName+`/abandon":"true"}}}`))
	if err := f.Patch(t.Context(), bundle, patch); err != nil {
		t.Fatal(err)
	}
	f.gone(t, bundle)
	namespaceIs("$NS", false)(t, f)
}

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
