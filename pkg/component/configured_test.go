// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

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
