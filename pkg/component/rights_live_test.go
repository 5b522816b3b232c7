// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/transport"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// grant gives rights in the namespace of the test to a user or, with the prefix of
// service accounts, to one.
func (b *bed) grant(user string, rules ...rbacv1.PolicyRule) {
	b.Helper()
	name := strings.ReplaceAll(user, ":", "-")
	b.check(b.client.Create(b.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Rules: rules}))
	b.check(b.client.Create(b.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}))
}

func rule(group, resources, verbs string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs)}
}

// ownRights are what an operator needs in the namespace of its components, beside
// the rights to the dependent objects.
var ownRights = []rbacv1.PolicyRule{
	rule("test.corbel.run", "widgets", "get list watch patch update"),
	rule("test.corbel.run", "widgets/status", "patch update"),
	rule("", "secrets", "get create"),
	rule("events.k8s.io", "events", "create patch"),
}

// restricted returns a manager of a user with rights in the namespace of the test only.
func (b *bed) restricted(user string, wrap ...transport.WrapperFunc) ctrl.Manager {
	b.Helper()
	config := must(b.env.ConfigFor(user))(b)
	for _, w := range wrap {
		config.Wrap(w)
	}
	return must(ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(b.T), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: b.manager.GetControllerOptions(),
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
	}))(b)
}

func TestAnOperatorWithRightsInOneNamespaceOnlyWorksThere(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	const user = "tenant-operator"
	b.grant(user, append(slices.Clone(ownRights), rule("", "configmaps", "get list watch create update patch delete"))...)
	manager := b.restricted(user)
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		OperatorNamespace: &b.namespace, ClusterUID: new("a-name-of-this-cluster"),
	})
	b.check(r.SetupWithManager(manager))
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.start(manager)
	seen := func() (string, component.State) {
		w := b.get()
		state, reason, message := w.Status.GetState()
		return string(state) + ", " + reason + ": " + message, state
	}
	b.comesTo(func() (string, bool) { text, state := seen(); return text, state == component.StateReady })
	b.update(func(w *widget.Widget) { w.Spec.Values = map[string]string{"b": "2"} })
	b.comesTo(func() (string, bool) {
		_, pruned := b.configMap("a")
		value, _ := b.configMap("b")
		text, state := seen()
		return text, !pruned && value == "2" && state == component.StateReady
	})
	b.check(b.client.Delete(t.Context(), b.get()))
	b.comesTo(func() (string, bool) {
		list := &widget.WidgetList{}
		b.check(b.client.List(t.Context(), list))
		left := slices.ContainsFunc(list.Items, func(w widget.Widget) bool { return w.Namespace == b.namespace })
		_, exists := b.configMap("b")
		return "still there", !left && !exists
	})
}

func TestAnOperatorThatMayNotReadTheUIDOfTheClusterSaysWhatToDo(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	const user = "nosy-operator"
	b.grant(user, ownRights...)
	b.reconciler = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{OperatorNamespace: &b.namespace})
	b.check(b.reconciler.SetupWithManager(b.restricted(user)))
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w, _, _ := b.reconcile()
	if _, reason, message := w.Status.GetState(); reason != v1alpha1.ReasonForbidden || !strings.Contains(message, "give the operator the right to get it, or set the option ClusterUID") {
		t.Errorf("%s: %s", reason, message)
	}
}

func TestTheDefaultServiceAccountWritesForComponentsThatNameNone(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{DefaultServiceAccount: new("deployer")})
	deployer, other := "system:serviceaccount:"+b.namespace+":deployer", "system:serviceaccount:"+b.namespace+":other"
	// Rights in the namespace are enough: it is the operator that identifies the cluster.
	b.grant(deployer, rule("", "configmaps", "get list watch create update patch delete"))
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.resetRequests()
	b.until(component.StateReady)
	writers := func() []string {
		var writers []string
		for _, e := range b.events()[b.since:] {
			if e.User == b.user && e.Resource == "configmaps" && e.Verb != "get" {
				writers = append(writers, e.Impersonated)
			}
		}
		return slices.Compact(writers)
	}
	if got := writers(); !slices.Equal(got, []string{deployer}) {
		t.Errorf("config maps were written by %q", got)
	}
	b.update(func(w *widget.Widget) { w.Spec.ServiceAccountName = "other"; w.Spec.Values["a"] = "2" })
	b.resetRequests()
	w, _, err := b.reconcile()
	if _, _, message := w.Status.GetState(); w.Status.State == component.StateReady || !strings.Contains(message, other) {
		t.Errorf("a service account without rights: %v; %s", err, message)
	}
	if value, _ := b.configMap("a"); value != "1" {
		t.Errorf("the config map became %q", value)
	}
}

func TestAllRefusalsOfAPassAreNamedAsRules(t *testing.T) {
	role := &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Rules: []rbacv1.PolicyRule{rule("", "pods", "get")}}
	binding := &rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}, ObjectMeta: metav1.ObjectMeta{Name: "admins"},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}
	allowed := &rbacv1.Role{TypeMeta: role.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: "allowed"}}
	b := newBed(t, rendering(configMap("a", nil), role, allowed, binding), component.ReconcilerOptions{DefaultServiceAccount: new("deployer")})
	deployer := "system:serviceaccount:" + b.namespace + ":deployer"
	b.create(widget.Spec{})
	message := func() string {
		t.Helper()
		w, result, err := b.reconcile()
		state, reason, message := w.Status.GetState()
		if state != component.StateError || reason != v1alpha1.ReasonForbidden || err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
			t.Errorf("%s, %s: %s; %v, %v", state, reason, message, result, err)
		}
		return message
	}
	_, _, _ = b.reconcile() // claims it
	want := "ServiceAccount " + b.namespace + "/deployer, which is impersonated, does not exist; " + deployer + " lacks rights: in namespace " + b.namespace +
		" rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, roles], verbs: [get, create]}]; "
	if got := message(); !strings.HasPrefix(got, want) || !strings.Contains(got, `cannot`) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	b.wantEvent(v1alpha1.ReasonForbidden, "resources: [rolebindings, roles]")

	// What was granted is not named any more, and what is allowed is written.
	b.check(b.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "deployer"}}))
	b.grant(deployer, rule("", "configmaps", "get create update delete"), rule("rbac.authorization.k8s.io", "roles rolebindings", "get create update delete"))
	b.forward += 10 * time.Second
	// The role and the binding grant what the account does not hold.
	want = deployer + " lacks rights: in namespace " + b.namespace + " rules: [" +
		`{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [cluster-admin], verbs: [bind]}, ` +
		`{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [escalate]}]; `
	b.comesTo(func() (string, bool) {
		b.forward += 10 * time.Second
		got := message()
		return got, strings.HasPrefix(got, want) && strings.Contains(got, "is attempting to grant RBAC permissions not currently held")
	})
	b.check(b.client.Get(t.Context(), types.NamespacedName{Namespace: b.namespace, Name: allowed.Name}, &rbacv1.Role{}))

	role.Rules, binding.RoleRef = nil, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"}
	b.forward += 10 * time.Second
	b.until(component.StateReady)
	for _, e := range b.events() {
		if e.User == b.user && strings.HasPrefix(e.Resource, "selfsubject") {
			t.Errorf("reviewed rights: %s %s", e.Verb, e.Resource)
		}
	}
}
