// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
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
	b.check(b.client.Delete(t.Context(), w))
	b.untilGone()
	if _, ok := b.configMap("a"); ok {
		t.Error("the dependent object was still there")
	}
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

func TestDependentsAreWrittenByTheServiceAccount(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{DefaultServiceAccount: new("deployer")})
	account := "system:serviceaccount:" + b.namespace + ":deployer"
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w := b.until(v1alpha1.StateError)
	if _, _, message := w.Status.GetState(); !strings.Contains(message, account) {
		t.Errorf("the message does not name the user: %s", message)
	}

	meta := metav1.ObjectMeta{Namespace: b.namespace, Name: "deployer"}
	for _, object := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: meta},
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}}},
		&rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "deployer"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: b.namespace, Name: "deployer"}}},
	} {
		b.check(b.client.Create(t.Context(), object))
	}
	b.resetRequests()
	b.until(v1alpha1.StateReady)
	for _, e := range b.events()[b.since:] {
		if e.Resource == "configmaps" && e.User == b.user && e.Impersonated != account {
			t.Errorf("%s of config map %s is by %q", e.Verb, e.Name, e.Impersonated)
		}
		if e.Resource == "widgets" && e.Impersonated != "" {
			t.Errorf("%s of the component is by %q", e.Verb, e.Impersonated)
		}
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
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
	b.check(b.reconciler.SetupWithManager(eagerManager{newManager(t, b.env, b.user), func(controller reconcile.Reconciler) error {
		reconciles++
		_, err := controller.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")})
		return err
	}}))
	if w := b.get(); reconciles != 1 || w.Status.State == "" {
		t.Errorf("%d reconciles were run, and the component is %+v", reconciles, w.Status)
	}
	b.until(v1alpha1.StateReady)
}
