// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
)

// farAway generates so many ConfigMaps with such long names that their inventory
// does not fit into a status. They live in another namespace than the component, so
// that only the operator removes them.
func farAway(namespace string) manifests.Generator {
	return manifests.GeneratorFunc(func(context.Context, string, string, corbeltypes.Unstructurable) ([]client.Object, error) {
		var objects []client.Object
		for i := range 600 {
			objects = append(objects, &corev1.ConfigMap{
				TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("config-%d-%s", i, strings.Repeat("x", 230))},
			})
		}
		return objects, nil
	})
}

// TestADeletionThatTakesTheSecretsOfTheInventoryFirst deletes a component in the ways
// in which others delete the Secrets of its inventory, while its objects are still
// there, and replaces the operator in the middle. The record must survive until the
// last object is gone.
func TestADeletionThatTakesTheSecretsOfTheInventoryFirst(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		delete func(t *testing.T, f *fixture, bundle *Bundle) error
		// spares is set if the Secrets may be left out of the deletion.
		spares bool
	}{
		// The Secrets do not block the deletion of their owner, so the garbage
		// collector deletes them if it comes to them before it removes its finalizer
		// from the component, and does not delete them otherwise.
		{"foreground deletion", func(t *testing.T, f *fixture, bundle *Bundle) error {
			return f.Delete(t.Context(), bundle, client.PropagationPolicy(metav1.DeletePropagationForeground))
		}, true},
		{"deletion of the Secrets", func(t *testing.T, f *fixture, bundle *Bundle) error {
			if err := f.Delete(t.Context(), bundle); err != nil {
				return err
			}
			for _, secret := range f.inventorySecrets(t) {
				// The operator removes those itself that a shorter record does not need.
				if err := f.Delete(t.Context(), &secret); client.IgnoreNotFound(err) != nil {
					return err
				}
			}
			return nil
		}, false},
		{"deletion of the namespace", func(t *testing.T, f *fixture, _ *Bundle) error {
			return f.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}})
		}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			far := f.newNamespace(t)
			first := f.startWith(t, farAway(far), nil)
			bundle := f.bundle(t, nil)
			f.ready(t, bundle)
			held := f.hold(t, far)

			if err := test.delete(t, f, bundle); err != nil {
				t.Fatal(err)
			}
			eventually(t, "others to delete the Secrets, and the operator all objects but one", func(ctx context.Context) error {
				secrets := f.inventorySecrets(t)
				if len(secrets) == 0 {
					t.Fatal("the inventory is gone")
				}
				if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
					return err
				}
				spared := test.spares && !controllerutil.ContainsFinalizer(bundle, metav1.FinalizerDeleteDependents)
				for _, s := range secrets {
					if s.DeletionTimestamp == nil && !spared {
						return fmt.Errorf("Secret %s is not being deleted", s.Name)
					}
				}
				list := &corev1.ConfigMapList{}
				if err := f.List(ctx, list, client.InNamespace(far), client.HasLabels{reconcilerName + "/owner-id"}); err != nil {
					return err
				}
				if len(list.Items) != 1 || list.Items[0].Name != held.Name {
					return fmt.Errorf("%d objects are there", len(list.Items))
				}
				return nil
			})
			first.stop(t)

			f.startWith(t, farAway(far), nil)
			f.removeFinalizer(t, held)
			f.gone(t, bundle)
			eventually(t, "the Secrets and the last object to be gone", func(ctx context.Context) error {
				if secrets := f.inventorySecrets(t); len(secrets) > 0 {
					return fmt.Errorf("%d Secrets are left", len(secrets))
				}
				if err := f.Get(ctx, client.ObjectKeyFromObject(held), held); !apierrors.IsNotFound(err) {
					return fmt.Errorf("the last object is still there: %v", err)
				}
				return nil
			})
		})
	}
}

// testFinalizer keeps an object from going.
const testFinalizer = "e2e.corbel.run/held"

// hold puts a finalizer on one of the ConfigMaps of a namespace.
func (f *fixture) hold(t *testing.T, namespace string) *corev1.ConfigMap {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := f.List(t.Context(), list, client.InNamespace(namespace), client.HasLabels{reconcilerName + "/owner-id"}); err != nil {
		t.Fatal(err)
	}
	held := &list.Items[len(list.Items)/2]
	held.Finalizers = []string{testFinalizer}
	if err := f.Update(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	return held
}

// removeFinalizer removes the finalizer.
func (f *fixture) removeFinalizer(t *testing.T, held *corev1.ConfigMap) {
	t.Helper()
	eventually(t, "the finalizer to be removed", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(held), held); err != nil {
			return err
		}
		held.Finalizers = nil
		return f.Update(ctx, held)
	})
}
