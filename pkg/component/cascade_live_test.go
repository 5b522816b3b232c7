// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// TestADeletionThatOrphansDetaches deletes with the propagation policy Orphan; the test does what the garbage collector does.
func TestADeletionThatOrphansDetaches(t *testing.T) {
	for name, collect := range map[string]func(b *bed){
		"the finalizer is there": func(*bed) {},
		"the collector was faster, while no operator ran": func(b *bed) {
			secret := b.kept()
			secret.OwnerReferences = nil
			b.check(b.client.Update(b.Context(), secret))
			b.anew()
			b.patchFinalizers(operatorName)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			b.until(component.StateReady)
			kept := client.ObjectKeyFromObject(b.kept())
			b.check(b.client.Delete(t.Context(), b.get(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
			collect(b)
			b.eventually("our finalizer is removed", func() error {
				if _, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}); err != nil {
					return err
				}
				w := &widget.Widget{}
				if err := b.client.Get(t.Context(), b.key("main"), w); err != nil {
					return client.IgnoreNotFound(err)
				}
				if slices.Contains(w.Finalizers, operatorName) {
					return fmt.Errorf("the finalizers are %v", w.Finalizers)
				}
				b.patchFinalizers() // as the garbage collector does
				return nil
			})
			live := &corev1.ConfigMap{}
			b.check(b.client.Get(t.Context(), b.key("a"), live))
			if len(live.Labels)+len(live.Annotations) > 0 {
				t.Errorf("it is not detached: %v", live.ObjectMeta)
			}
			if err := b.client.Get(t.Context(), kept, &corev1.Secret{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Secret of the revisions is left: %v", err)
			}
		})
	}
}
