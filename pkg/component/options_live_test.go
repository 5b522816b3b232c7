// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

func managersOf(object client.Object) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	return managers
}

func TestFieldOwnerFinalizerSchemeAndClientAreThoseOfTheOptions(t *testing.T) {
	var counts atomic.Int64
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		FieldOwner: new("another-owner"), Finalizer: new("test.corbel.run/mine"), SchemeBuilder: definitions{},
		Controller: component.ControllerOptions{NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			plain, err := client.New(config, options)
			return &counted{Client: plain, gets: &counts}, err
		}},
	}, func(b *bed) {
		b.reconciler.WithPreReconcileHook(func(ctx context.Context, c client.Client, _ *widget.Widget) error {
			before := counts.Load()
			if err := manifests.FromContext(ctx).LocalClient.Get(ctx, b.key("main"), &widget.Widget{}); err != nil || counts.Load() != before+1 {
				b.Errorf("the client of the context is another one: %v", err)
			}
			if c != b.manager.GetClient() {
				b.Error("the client of a hook is not the manager's")
			}
			target, err := component.ClientFromContext(ctx)
			if err == nil {
				err = target.List(ctx, &apiextensionsv1.CustomResourceDefinitionList{})
			}
			return err
		})
	})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w, dependent := b.until(v1alpha1.StateReady), &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("a"), dependent))
	if got := managersOf(dependent); !slices.Equal(got, []string{"another-owner"}) {
		t.Errorf("the dependent object has the field managers %q", got)
	}
	if got := managersOf(w); !slices.Contains(got, "another-owner") || !slices.Equal(w.Finalizers, []string{"test.corbel.run/mine"}) {
		t.Errorf("the component has the field managers %q and the finalizers %q", got, w.Finalizers)
	}
	b.remove()
	b.wantNone("a")
}

// definitions adds a type that the manager does not know.
type definitions struct{}

func (definitions) AddToScheme(scheme *runtime.Scheme) error {
	return apiextensionsv1.AddToScheme(scheme)
}

type counted struct {
	client.Client
	gets *atomic.Int64
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.gets.Add(1)
	return c.Client.Get(ctx, key, object, options...)
}

const policyAnnotation = operatorName + "/management-policy"

func (b *bed) setPolicy(policy string) {
	b.Helper()
	b.update(func(w *widget.Widget) { w.Annotations = map[string]string{policyAnnotation: policy} })
}

func TestTheManagementPolicyOfTheOptionsAndOfTheNamespaceApplyUnlessTheComponentSaysOtherwise(t *testing.T) {
	for name, options := range map[string]component.ReconcilerOptions{
		"the options": {ManagementPolicy: new(v1alpha1.ManagementPolicySkip)}, "the namespace": {Users: component.UserOptions{NamespaceManagementPolicies: true}}, "neither": {},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), options)
			if name != "the options" {
				namespace := &corev1.Namespace{}
				b.check(b.client.Get(t.Context(), client.ObjectKey{Name: b.namespace}, namespace))
				namespace.Annotations = map[string]string{policyAnnotation: "skip"}
				b.check(b.client.Update(t.Context(), namespace))
			}
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			if name != "neither" {
				b.expect(v1alpha1.StateSuspended, vocabulary.ReasonSuspended)
				b.setPolicy("manage")
			}
			b.until(v1alpha1.StateReady)
		})
	}
}

// eagerManager starts controllers as a manager does that runs already: as soon as
// they are added, and so before the setup ends.
type eagerManager struct {
	ctrl.Manager
	start func(reconcile.Reconciler) error
}

func (m eagerManager) Add(runnable manager.Runnable) error {
	if controller, ok := runnable.(reconcile.Reconciler); ok {
		if err := m.start(controller); err != nil {
			return err
		}
	}
	return m.Manager.Add(runnable)
}

func TestAControllerThatStartsBeforeTheSetupEndsCanReconcile(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.reconciler = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	reconciles := 0
	b.check(b.reconciler.SetupWithManager(eagerManager{newManager(t, b.env, b.user, nil), func(controller reconcile.Reconciler) error {
		reconciles++
		_, err := controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")})
		return err
	}}))
	if w := b.get(); reconciles != 1 || w.Status.State == "" {
		t.Errorf("%d reconciles were run, and the component is %+v", reconciles, w.Status)
	}
	b.until(v1alpha1.StateReady)
}

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
		if state != v1alpha1.StateError || reason != vocabulary.ReasonForbidden || err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 10*time.Second {
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
	b.wantEvent(vocabulary.ReasonForbidden, "resources: [rolebindings, roles]")

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
	b.until(v1alpha1.StateReady)
	for _, e := range b.events() {
		reviews, ofDependent := strings.HasPrefix(e.Resource, "selfsubject"), e.Resource == "configmaps" || e.Resource == "roles"
		if e.User == b.user && (reviews || ofDependent && e.Impersonated != deployer || e.Resource == "widgets" && e.Impersonated != "") {
			t.Errorf("%s of %s %s is by %q", e.Verb, e.Resource, e.Name, e.Impersonated)
		}
	}
}

// comesToBeReady waits until the component is ready as it is now.
func (b *bed) comesToBeReady() {
	b.Helper()
	b.comesTo(func() (string, bool) {
		w := b.get()
		state, reason, message := w.Status.GetState()
		return fmt.Sprintf("%s, %s: %s", state, reason, message), w.Status.IsReady() && w.Status.ObservedGeneration == w.Generation
	})
}

// comesToHold waits until a config map has the value.
func (b *bed) comesToHold(name, value string) {
	b.Helper()
	b.comesTo(func() (string, bool) {
		got, exists := b.configMap(name)
		return fmt.Sprintf("%q, exists: %t", got, exists), got == value
	})
}

// sent returns the requests of the operator since the last resetRequests for objects of a type.
func (b *bed) sent(resource string) []string {
	b.Helper()
	var sent []string
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Resource == resource {
			sent = append(sent, fmt.Sprintf("%s %s: %d", e.Verb, e.Name, e.Code))
		}
	}
	return sent
}

func TestRightsInOneNamespaceAreEnough(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	const user = "watching-tenant"
	b.grant(user, append(slices.Clone(ownRights), rule("", "configmaps", "get list watch create update patch delete"))...)
	manager := b.confined(must(b.env.ConfigFor(user))(b), newScheme(t))
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Operator: component.OperatorOptions{OperatorNamespace: &b.namespace, ClusterUID: new("a-name-of-this-cluster")},
	})
	b.check(r.SetupWithManager(manager))
	b.user, b.auditOptions.User = user, user
	b.start(manager)
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1", "b": "1"}})
	b.comesToBeReady()

	// Nothing but its event shows the drift.
	b.resetRequests()
	object := &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("a"), object))
	object.Data["value"] = "theirs"
	b.check(b.client.Update(t.Context(), object, client.FieldOwner("kubectl-edit")))
	b.comesToHold("a", "1")
	repair := b.sent("configmaps")
	if len(repair) > 0 && strings.HasPrefix(repair[0], "watch ") { // it may have started after the component became ready
		repair = repair[1:]
	}
	if diff := cmp.Diff([]string{"get a: 200", "update a: 200"}, repair); diff != "" {
		t.Errorf("the requests of a repair (-want +got):\n%s", diff)
	}
	b.check(b.client.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: b.object("b")}))
	b.comesToHold("b", "1")
	b.comesToBeReady()
}
