// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
)

func TestAComponentThatIsSuspendedBetweenTwoWavesStopsThereAndGoesOnLater(t *testing.T) {
	first := configMap("first", func(c *corev1.ConfigMap) {
		c.Annotations = map[string]string{operatorName + "/ready-when": "'open' in self.data", operatorName + "/ignore-fields": "/data/open"}
		c.Data = map[string]string{"value": "1"}
	})
	second := annotated("second", "apply-order", "1")
	b := newBed(t, rendering(first, second), component.ReconcilerOptions{})
	b.create(widget.Spec{})
	b.until(component.StateProcessing)
	b.update(func(w *widget.Widget) { w.Spec.Suspend = true })
	b.expect(component.StateSuspended, v1alpha1.ReasonSuspended)
	opened := &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("first"), opened))
	opened.Data["open"] = "yes"
	b.check(b.client.Update(t.Context(), opened))
	b.resetRequests()
	for range 3 {
		b.reconcile()
	}
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("writes while it is suspended: %v", writes)
	}
	b.update(func(w *widget.Widget) { w.Spec.Suspend = false })
	b.until(component.StateReady)
	if writes := b.writes(); !slices.Contains(writes, "create configmaps second") {
		t.Errorf("writes after it: %v", writes)
	}
}
