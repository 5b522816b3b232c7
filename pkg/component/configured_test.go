// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
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
	b.until(component.StateReady)
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
			b.until(component.StateReady)
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
	before := apimeta.FindStatusCondition(b.until(component.StateReady).Status.Conditions, v1alpha1.ConditionReady)
	b.forward += 2 * time.Minute
	b.resetRequests()
	w := b.expect(component.StateReady, v1alpha1.ReasonReady)
	after := apimeta.FindStatusCondition(w.Status.Conditions, v1alpha1.ConditionReady)
	if !before.LastTransitionTime.Equal(&after.LastTransitionTime) {
		t.Errorf("Ready changed at %s", after.LastTransitionTime)
	}
	if writes := b.writes(); len(writes) == 0 || writes[0] != "update configmaps a" {
		t.Errorf("writes %v, want the refresh", writes)
	}
}
