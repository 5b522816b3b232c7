// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

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
