// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

const policyAnnotation = operatorName + "/management-policy"

func (b *bed) setPolicy(policy string) {
	b.Helper()
	b.update(func(w *widget.Widget) { w.Annotations = map[string]string{policyAnnotation: policy} })
}

func TestUnderAManagementPolicyThatDoesNotExistNothingIsDoneAndTheConditionSaysSo(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	b.setPolicy("detach-on-delte")
	b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
	const want = "/main: annotation test.corbel.run/management-policy: \"detach-on-delte\" must be one of manage, skip, detach-on-delete"
	said := func(w *widget.Widget) {
		t.Helper()
		if _, _, message := w.Status.GetState(); !strings.HasSuffix(message, want) {
			t.Errorf("it says %q", message)
		}
	}
	said(b.expect(component.StateError, v1alpha1.ReasonSpecInvalid))
	if value, _ := b.configMap("a"); value != "1" {
		t.Errorf("the dependent became %q", value)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	said(b.expect(component.StateDeleting, v1alpha1.ReasonSpecInvalid))
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
	b.expect(component.StateSuspended, v1alpha1.ReasonSuspended)
	if _, there := b.configMap("a"); there {
		t.Error("the dependent was created")
	}
	b.setPolicy("manage")
	b.until(component.StateReady)
}

func TestTheManagementPolicyOfANamespaceAppliesIfTheOptionsSaySo(t *testing.T) {
	for _, counts := range []bool{true, false} {
		b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{NamespaceManagementPolicies: counts})
		namespace := &corev1.Namespace{}
		b.check(b.client.Get(t.Context(), client.ObjectKey{Name: b.namespace}, namespace))
		namespace.Annotations = map[string]string{policyAnnotation: "skip"}
		b.check(b.client.Update(t.Context(), namespace))
		b.create(widget.Spec{Values: map[string]string{"a": "1"}})
		if !counts {
			b.until(component.StateReady)
			continue
		}
		b.expect(component.StateSuspended, v1alpha1.ReasonSuspended)
		b.setPolicy("manage")
		b.until(component.StateReady)
	}
}
