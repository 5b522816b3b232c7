// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/rbacrules"
	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// unused are the rules that the life of a Shop may not need, and why the operator has them.
var unused = map[string]string{
	"list pods.":   "pods explain a workload that fails or is not ready within the timeout",
	"list events.": "events explain a workload without pods",
	"list apiservices.apiregistration.k8s.io": "they are read if the type of an object is not served any more when it is deleted",
}

// operatorNamespace is where the operator has its service account.
const operatorNamespace = "default"

// grant creates what YAML holds: the service account of an operator, its roles and their bindings. It returns the rules.
func grant(t *testing.T, c client.Client, text string) (granted []rbacv1.PolicyRule) {
	t.Helper()
	for reader := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096); ; {
		object, role := &unstructured.Unstructured{}, &rbacv1.ClusterRole{} // a Role has the same rules
		if err := reader.Decode(object); errors.Is(err, io.EOF) {
			return granted
		} else if err != nil {
			t.Fatal(err)
		}
		check.NoError(t, c.Create(t.Context(), object))
		if strings.HasSuffix(object.GetKind(), "Role") {
			check.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, role))
			granted = append(granted, role.Rules...)
		}
	}
}

func TestTheOperatorRunsWithTheRulesThatAreGeneratedForItsChart(t *testing.T) {
	kinds, unknown, err := rbacrules.ScanChart(chart, "chart")
	if err != nil || len(unknown) > 0 {
		t.Fatalf("unknown: %q, %v", unknown, err)
	}
	generated := rbacrules.Operator{Account: "generated", Group: shopv1alpha1.GroupVersion.Group, Resource: "shops", Namespace: operatorNamespace}
	text := check.Must(generated.YAML(kinds))(t)
	config := env.Shared(t).Config()
	check.Must(envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{"config/crd"}}))(t)
	scheme := check.Must(options().Scheme())(t)
	c := check.Must(client.New(config, client.Options{Scheme: scheme}))(t)
	granted := grant(t, c, text)
	operator := componenttest.Operator[*shopv1alpha1.Shop]{
		Config: config, Scheme: scheme, As: &rest.ImpersonationConfig{UserName: "system:serviceaccount:" + operatorNamespace + ":" + generated.Account},
		SetUp: func(manager ctrl.Manager) error {
			o := options()
			o.Reconciler.Operator.OperatorNamespace = new(operatorNamespace)
			_, err := o.SetUp(manager)
			return err
		},
		Prerequisites: []client.Object{&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: usual.DatabaseSecret}, StringData: map[string]string{"password": "swordfish"},
		}},
	}
	shop := &shopv1alpha1.Shop{ObjectMeta: metav1.ObjectMeta{Name: "corner"}, Spec: shopv1alpha1.ShopSpec{ShopValues: usual}}
	change := func(s *shopv1alpha1.Shop) { s.Spec.Replicas, s.Spec.Greeting = 3, "Closed" }
	idle := map[string]bool{}
	for _, rule := range operator.TestRights(t, shop, change, granted) {
		idle[nameOf(rule, rule.Resources[0])] = true
	}
	for _, rule := range granted {
		for _, resource := range rule.Resources {
			if name := nameOf(rule, resource); idle[name] && unused[name] == "" {
				t.Errorf("no request used the rule %s", name)
			}
		}
	}
}

// nameOf is a rule about a resource, in words.
func nameOf(rule rbacv1.PolicyRule, resource string) string {
	return fmt.Sprintf("%s %s.%s", strings.Join(rule.Verbs, ","), resource, rule.APIGroups[0])
}
