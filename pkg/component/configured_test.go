// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestDependentsArePutBesideTheComponentByDefault(t *testing.T) {
	var gotNamespace, gotName string
	b := newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		gotNamespace, gotName = namespace, name
		return configMaps(ctx, namespace, name, p)
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	if _, there := b.configMap("a"); !there || gotNamespace != b.namespace || gotName != "main" {
		t.Errorf("there: %t; the generator got %s/%s", there, gotNamespace, gotName)
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

func TestForeignInstancesOfTypesThatTheComponentDeclaresBlockItsDeletionAndAreNamed(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{
		TypeSpec: component.TypeSpec{AdditionalManagedTypes: []v1alpha1.TypeInfo{{Group: "batch", Kind: "CronJob"}}},
		Values:   map[string]string{"a": "1"},
	})
	b.until(component.StateReady)
	foreign := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "foreign"},
		Spec: batchv1.CronJobSpec{Schedule: "@yearly", JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
		}}}},
	}
	b.check(b.client.Create(t.Context(), foreign))
	b.check(b.client.Delete(t.Context(), b.get()))
	w := b.expect(component.StateDeleting, v1alpha1.ReasonDeletionBlocked)
	if _, _, message := w.Status.GetState(); !strings.Contains(message, b.namespace+"/foreign") {
		t.Errorf("the message does not name the blocker: %s", message)
	}
	if _, there := b.configMap("a"); !there {
		t.Error("something was deleted although the deletion is blocked")
	}
	b.check(b.client.Delete(t.Context(), foreign))
	b.untilGone()
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

func TestAComponentUnderTheManagementPolicySkipIsLeftAloneAlsoWhenItIsDeleted(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	b.update(func(w *widget.Widget) {
		w.Annotations = map[string]string{operatorName + "/management-policy": "skip"}
		w.Spec.Values["a"] = "2"
	})
	b.expect(component.StateSuspended, v1alpha1.ReasonSuspended)
	if value, _ := b.configMap("a"); value != "1" {
		t.Errorf("the dependent became %q", value)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	if _, there := b.configMap("a"); !there {
		t.Error("the dependent was deleted")
	}
}

func TestTheManagementPolicyManageIsTheDefaultAndMayBeWrittenOut(t *testing.T) {
	for _, policy := range []string{"manage", "Manage"} {
		t.Run(policy, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			b.update(func(w *widget.Widget) { w.Annotations = map[string]string{operatorName + "/management-policy": policy} })
			b.until(component.StateReady)
			b.check(b.client.Delete(t.Context(), b.get()))
			b.untilGone()
			if _, there := b.configMap("a"); there {
				t.Error("the dependent was still there")
			}
		})
	}
}

func TestTheFinalizersOfTheServersOwnDeletionDoNotBlock(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground} {
		t.Run(string(policy), func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			b.until(component.StateReady)
			b.check(b.client.Delete(t.Context(), b.get(), client.PropagationPolicy(policy)))
			// No controller collects garbage here, so the component stays; its dependents must not.
			for deadline := time.Now().Add(patience); ; {
				_, result, err := b.reconcile()
				if _, there := b.configMap("a"); !there {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("the dependent is still there; the last reconcile returned %+v and %v", result, err)
				}
				time.Sleep(min(result.RequeueAfter, time.Second))
			}
		})
	}
}

func TestUsersPatchTheDependentsOfAComponent(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "2"}, PatchesSpec: component.PatchesSpec{Patches: []v1alpha1.Patch{
		{Target: &v1alpha1.PatchTarget{Kind: "ConfigMap", Name: "a"}, Patch: "metadata:\n  labels: {team: shop}\n"},
	}}})
	b.until(component.StateReady)
	for name, want := range map[string]string{"a": "shop", "b": ""} {
		dependent := &corev1.ConfigMap{}
		b.check(b.client.Get(t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, dependent))
		if got := dependent.Labels["team"]; got != want {
			t.Errorf("%s: got the label %q, want %q", name, got, want)
		}
	}
}
