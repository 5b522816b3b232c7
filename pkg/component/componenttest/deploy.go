// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"io/fs"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/deploy"
)

// Deploy installs the Helm chart of an operator, which is at the root of the files, into the namespace <chart>-system, without its
// workloads and hooks: its CustomResourceDefinitions, its service account, and the rights of that. It
// returns the service account as the field As of an Operator, and the rules of its roles for TestRights.
// Objects that exist are changed.
func Deploy(t testing.TB, config *rest.Config, chart fs.FS) (as *rest.ImpersonationConfig, rules []rbacv1.PolicyRule) {
	t.Helper()
	version, err := deploy.VersionOf(config)
	if err != nil {
		t.Fatal(err)
	}
	operator, err := deploy.Render(t.Context(), chart, version)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := operator.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if rules, err = operator.Rules(); err != nil {
		t.Fatal(err)
	}
	return &rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + operator.Namespace + ":" + operator.Account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + operator.Namespace, "system:authenticated"},
	}, rules
}
