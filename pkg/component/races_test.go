// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

func TestTheFinalizerComesBeforeAnythingElse(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.resetRequests()
	b.until(component.StateReady)
	want := []string{
		"patch widgets main",        // finalizer
		"patch widgets/status main", // first seen, and inventory
		"create configmaps ",
		"create secrets main-revisions",
		"patch widgets/status main", // ready
	}
	got := b.writes()
	for i := range got {
		if strings.HasPrefix(got[i], "create configmaps") {
			got[i] = "create configmaps "
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestDetachOnDelete(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(component.StateReady)
	b.update(func(w *widget.Widget) {
		w.Annotations = map[string]string{operatorName + "/management-policy": "detach-on-delete"}
	})
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	left := &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("a"), left))
	if len(left.Labels)+len(left.Annotations) > 0 || left.Data["value"] != "1" {
		t.Errorf("config map a still has our label and annotation, or changed: %v %v %v", left.Labels, left.Annotations, left.Data)
	}
}

func TestSecondSetupIsAnError(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	if err := b.reconciler.SetupWithManager(b.manager); err == nil || !strings.Contains(err.Error(), "set up before") {
		t.Errorf("error %v", err)
	}
	if _, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}); err != nil {
		t.Errorf("the first setup does not work any more: %v", err)
	}
}
