// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestDependentsArePutWhereThePlacementOfTheComponentSays(t *testing.T) {
	var gotNamespace, gotName string
	b := newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		gotNamespace, gotName = namespace, name
		return configMaps(ctx, namespace, name, p)
	}), component.ReconcilerOptions{})
	elsewhere := b.namespace + "-placed"
	b.create(widget.Spec{PlacementSpec: component.PlacementSpec{Namespace: elsewhere, Name: "other"}, Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	if gotNamespace != elsewhere || gotName != "other" {
		t.Errorf("the generator got %s/%s", gotNamespace, gotName)
	}
	b.check(b.client.Get(t.Context(), client.ObjectKey{Namespace: elsewhere, Name: "a"}, &corev1.ConfigMap{}))
	if _, there := b.configMap("a"); there {
		t.Error("it was put beside the component, too")
	}
}

func TestThePoliciesOfAComponentOverrideThoseOfTheReconciler(t *testing.T) {
	for name, test := range map[string]struct {
		options component.ReconcilerOptions
		spec    component.PolicySpec
		left    bool
	}{
		"the reconciler alone": {component.ReconcilerOptions{DeletePolicy: new(v1alpha1.DeletePolicyOrphan)}, component.PolicySpec{}, true},
		"the component alone":  {component.ReconcilerOptions{}, component.PolicySpec{DeletePolicy: v1alpha1.DeletePolicyOrphan}, true},
		"the component against the reconciler": {
			component.ReconcilerOptions{DeletePolicy: new(v1alpha1.DeletePolicyOrphan)}, component.PolicySpec{DeletePolicy: v1alpha1.DeletePolicyDelete}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), test.options)
			b.create(widget.Spec{PolicySpec: test.spec, Values: map[string]string{"a": "1"}})
			b.until(v1alpha1.StateReady)
			b.check(b.client.Delete(t.Context(), b.get()))
			b.untilGone()
			if _, left := b.configMap("a"); left != test.left {
				t.Errorf("still there: %t, want %t", left, test.left)
			}
		})
	}
}

func TestAReapplyOfAComponentNeverFlipsReady(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{ReapplySpec: component.ReapplySpec{ReapplyInterval: interval(time.Minute)}, Values: map[string]string{"a": "1"}})
	before := apimeta.FindStatusCondition(b.until(v1alpha1.StateReady).Status.Conditions, v1alpha1.ConditionReady)
	b.forward += 2 * time.Minute
	b.resetRequests()
	w := b.expect(v1alpha1.StateReady, vocabulary.ReasonReady)
	after := apimeta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
	if !before.LastTransitionTime.Equal(&after.LastTransitionTime) {
		t.Errorf("Ready changed at %s", after.LastTransitionTime)
	}
	if writes := b.writes(); len(writes) == 0 || writes[0] != "update configmaps a" {
		t.Errorf("writes %v, want the refresh", writes)
	}
}

const policyAnnotation = operatorName + "/management-policy"

func (b *bed) setPolicy(policy string) {
	b.Helper()
	b.update(func(w *widget.Widget) { w.Annotations = map[string]string{policyAnnotation: policy} })
}

func TestUnderAManagementPolicyThatDoesNotExistNothingIsDoneAndTheConditionSaysSo(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.setPolicy("detach-on-delte")
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
	const want = "/main: annotation test.corbel.run/management-policy: \"detach-on-delte\" must be one of manage, skip, detach-on-delete"
	said := func(w *widget.Widget) {
		t.Helper()
		if _, _, message := w.Status.GetState(); !strings.HasSuffix(message, want) {
			t.Errorf("it says %q", message)
		}
	}
	said(b.expect(v1alpha1.StateError, vocabulary.ReasonSpecInvalid))
	if value, _ := b.configMap("a"); value != "1" {
		t.Errorf("the dependent became %q", value)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	said(b.expect(v1alpha1.StateDeleting, vocabulary.ReasonSpecInvalid))
	if _, there := b.configMap("a"); !there {
		t.Error("the dependent was deleted")
	}
	b.setPolicy("detach-on-delete")
	b.untilGone()
	if _, there := b.configMap("a"); !there {
		t.Error("the dependent was deleted although it was to be orphaned")
	}
}

func TestTheManagementPolicyOfTheOptionsAppliesUnlessTheComponentSaysOtherwise(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{ManagementPolicy: new(v1alpha1.ManagementPolicySkip)})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.expect(v1alpha1.StateSuspended, vocabulary.ReasonSuspended)
	if _, there := b.configMap("a"); there {
		t.Error("the dependent was created")
	}
	b.setPolicy("manage")
	b.until(v1alpha1.StateReady)
}

func TestTheManagementPolicyOfANamespaceAppliesIfTheOptionsSaySo(t *testing.T) {
	for _, counts := range []bool{true, false} {
		b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Users: component.UserOptions{NamespaceManagementPolicies: counts}})
		namespace := &corev1.Namespace{}
		b.check(b.client.Get(t.Context(), client.ObjectKey{Name: b.namespace}, namespace))
		namespace.Annotations = map[string]string{policyAnnotation: "skip"}
		b.check(b.client.Update(t.Context(), namespace))
		b.create(widget.Spec{Values: map[string]string{"a": "1"}})
		if !counts {
			b.until(v1alpha1.StateReady)
			continue
		}
		b.expect(v1alpha1.StateSuspended, vocabulary.ReasonSuspended)
		b.setPolicy("manage")
		b.until(v1alpha1.StateReady)
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
