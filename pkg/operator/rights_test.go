// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"testing"
	"testing/fstest"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/deploy"
	"github.com/corbel-run/corbel/internal/rbacrules"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/test/check"
)

// installed returns the operator of widgets, with the rules that are generated for it, as its chart installs it.
func installed(t *testing.T, name string, o rbacrules.Operator, reconciler component.ReconcilerOptions) (componenttest.Operator[*widget.Widget], []rbacv1.PolicyRule) {
	t.Helper()
	config, c := connect(t)
	namespace := name + "-system"
	o.Account, o.Namespace, o.Group, o.Resource = name, "{{ .Release.Namespace }}", "test.corbel.run", "widgets"
	text := check.Must(o.YAML([]rbacrules.Kind{{Version: "v1", Kind: "ConfigMap", Resource: "configmaps", Namespaced: true}}))(t)
	as, granted := componenttest.Deploy(t, config, fstest.MapFS{
		"Chart.yaml":          {Data: []byte("{apiVersion: v2, name: " + name + ", version: 1.0.0}")},
		"values.yaml":         {Data: []byte("{optionalRights: true, deployers: []}")},
		"templates/rbac.yaml": {Data: []byte(text)},
		"templates/operator.yaml": {Data: []byte("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n" +
			"spec: {template: {spec: {serviceAccountName: " + name + ", containers: [{name: operator}]}}}\n")},
	})
	options := widgets()
	options.Reconciler = reconciler
	options.Reconciler.Operator.OperatorNamespace = &namespace
	return componenttest.Operator[*widget.Widget]{
		Config: config, Scheme: c.Scheme(), As: as, Namespaced: o.Namespaced,
		SetUp: func(manager ctrl.Manager) error {
			_, err := options.SetUp(manager)
			return err
		},
	}, granted
}

// deployerIn returns the account that writes the objects in a namespace, with the rights of ClusterRoles there.
func deployerIn(namespace, account string, roles ...string) []client.Object {
	objects := []client.Object{&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}}
	for _, role := range roles {
		objects = append(objects, &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account + "-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		})
	}
	return objects
}

func changed(w *widget.Widget) { w.Spec.Values = map[string]string{"other": "2"} }

func TestAnOperatorOfOneNamespaceNeedsRolesOnly(t *testing.T) {
	for name, test := range map[string]struct {
		rules   rbacrules.Operator
		options component.ReconcilerOptions
	}{
		"confined":          {rbacrules.Operator{Namespaced: true}, component.ReconcilerOptions{Operator: component.OperatorOptions{Namespaced: true}}},
		"confined-deployer": {rbacrules.Operator{Namespaced: true, Deployer: "deployer"}, component.ReconcilerOptions{Operator: component.OperatorOptions{Namespaced: true}, DefaultServiceAccount: new("deployer")}},
	} {
		t.Run(name, func(t *testing.T) {
			operator, granted := installed(t, name, test.rules, test.options)
			operator.TestRights(t, named("", "main"), changed, granted)
			// There is no binding in the cluster.
			bindings := &rbacv1.ClusterRoleBindingList{}
			_, c := connect(t)
			check.NoError(t, c.List(t.Context(), bindings))
			for _, binding := range bindings.Items {
				for _, subject := range binding.Subjects {
					if subject.Namespace == name+"-system" {
						t.Errorf("ClusterRoleBinding %s binds %s", binding.Name, subject.Name)
					}
				}
			}
		})
	}
}

func TestAnOperatorActsAsAccountsForWhatItNeedsOnly(t *testing.T) {
	const name = "acting"
	operator, granted := installed(t, name, rbacrules.Operator{Deployer: "deployer"}, component.ReconcilerOptions{DefaultServiceAccount: new("deployer")})
	version := check.Must(deploy.VersionOf(operator.Config))(t)
	constrained := utilversion.MustParseGeneric(version).AtLeast(utilversion.MustParseGeneric("1.36"))
	for _, rule := range granted {
		for _, verb := range rule.Verbs {
			if verb == "impersonate" && constrained {
				t.Errorf("it may impersonate without constraints: %v", rule)
			}
		}
	}
	operator.Prerequisites = deployerIn("", "deployer", name+"-deployer")
	operator.TestRights(t, named("", "main"), changed, granted)
	if !constrained {
		t.Logf("Kubernetes %s has no constrained impersonation: what the operator may do beyond its rules is not tested", version)
		return
	}

	_, admin := connect(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "acting-"}}
	check.NoError(t, admin.Create(t.Context(), namespace))
	tenant := namespace.Name
	// Both accounts may do more than the operator.
	more := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + "-more"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets", "pods"}, Verbs: []string{"*"}},
	}}
	objects := append(deployerIn(tenant, "deployer", name+"-deployer", more.Name), deployerIn(tenant, "other", name+"-deployer", more.Name)...)
	for _, object := range append(objects, more) {
		check.NoError(t, admin.Create(t.Context(), object))
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name + "-system", Name: name}}
	request := &authenticationv1.TokenRequest{}
	check.NoError(t, admin.SubResource("token").Create(t.Context(), account, request))
	as := func(account string) client.Client {
		config := rest.AnonymousClientConfig(operator.Config)
		config.BearerToken = request.Status.Token
		if account != "" {
			config.Impersonate.UserName = "system:serviceaccount:" + tenant + ":" + account
		}
		c := check.Must(client.New(config, client.Options{Scheme: operator.Scheme, Mapper: admin.RESTMapper()}))(t)
		return c
	}
	object := func() *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "mine"}}
	}
	deployer := as("deployer")
	created := object()
	for what, err := range map[string]error{
		"create": deployer.Create(t.Context(), created),
		"update": deployer.Update(t.Context(), created),
		"get":    deployer.Get(t.Context(), client.ObjectKeyFromObject(created), object()),
		"list":   deployer.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(tenant)),
		"delete": deployer.Delete(t.Context(), created),
	} {
		if err != nil {
			t.Errorf("%s as the account: %v", what, err)
		}
	}
	for what, err := range map[string]error{
		"write as another account":    as("other").Create(t.Context(), object()),
		"read Secrets as the account": deployer.List(t.Context(), &corev1.SecretList{}, client.InNamespace(tenant)),
		"create Pods as the account":  deployer.Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}),
		"read ConfigMaps itself":      as("").List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace(tenant)),
		"write ConfigMaps itself":     as("").Create(t.Context(), object()),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want an error that is Forbidden", what, err)
		}
	}
	err := as("other").Create(t.Context(), object())
	check.Fails(t, err, "impersonate")
	t.Logf("the server says: %v; %v", err, deployer.List(t.Context(), &corev1.SecretList{}, client.InNamespace(tenant)))
}
