// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// patchStatus changes the status of the component as a client does that may.
func (b *bed) patchStatus(jsonPatch string) {
	b.Helper()
	b.check(b.client.Status().Patch(b.Context(), b.get(), client.RawPatch(apitypes.JSONPatchType, []byte(jsonPatch))))
}

// The ways in which a status is lost.
const (
	statusEmptied    = `[{"op": "replace", "path": "/status", "value": {}}]`
	inventoryDropped = `[{"op": "remove", "path": "/status/inventory"}]`
)

// searches counts the requests that look for objects by their ownership label since the last resetRequests.
func (b *bed) searches() (count int) {
	b.Helper()
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Verb == "list" && strings.Contains(e.URI, "owner-id") && strings.Contains(e.URI, "limit=500") && !strings.Contains(e.URI, "resourceVersion") {
			count++
		}
	}
	return count
}

// withAccount adds a ServiceAccount if a value asks for it.
func withAccount(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	objects, err := configMaps(ctx, namespace, name, parameters)
	for i, object := range objects {
		if object.GetName() == "account" {
			objects[i] = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "account"}}
		}
	}
	return objects, err
}

func TestAComponentThatLostItsStatusFindsItsObjectsAgain(t *testing.T) {
	for name, test := range map[string]struct {
		loss   string
		values int
	}{
		"an empty status":               {statusEmptied, 3},
		"an inventory that was dropped": {inventoryDropped, 3},
		"an inventory in Secrets":       {statusEmptied, 30},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(withAccount), component.ReconcilerOptions{}, smallStatus)
			values := many(0, test.values)
			values["account"] = "1"
			b.create(widget.Spec{Values: values})
			b.until(v1alpha1.StateReady)
			if searches := b.searches(); searches > 0 {
				t.Errorf("%d searches in the installation", searches)
			}
			foreign := &corev1.ConfigMap{}
			b.check(b.client.Get(t.Context(), b.key("config-01"), foreign))
			earlier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "earlier", Labels: foreign.Labels}}
			owner := foreign.Annotations[operatorName+"/owner"]
			earlier.Annotations = map[string]string{operatorName + "/owner": owner[:strings.LastIndex(owner, "/")] + "/another-uid"}
			b.check(b.client.Create(t.Context(), earlier))

			b.patchStatus(test.loss)
			b.update(func(w *widget.Widget) {
				delete(w.Spec.Values, "config-00")
				delete(w.Spec.Values, "account") // of this type, nothing is rendered any more
			})
			b.anew()
			b.resetRequests()
			w := b.until(v1alpha1.StateReady)
			if _, exists := b.configMap("config-00"); exists {
				t.Error("the object that is not desired any more is still there")
			}
			if err := b.client.Get(t.Context(), b.key("account"), &corev1.ServiceAccount{}); !apierrors.IsNotFound(err) {
				t.Errorf("the object of a type that is not desired any more: %v", err)
			}
			if _, exists := b.configMap("earlier"); !exists {
				t.Error("the object of an earlier component is gone")
			}
			if w.Status.Inventory.Count() != test.values-1 || w.Status.Inventory.IsLost() {
				t.Errorf("the inventory has %d objects", w.Status.Inventory.Count())
			}
			b.reconcile()
			b.anew()
			b.reconcile()
			if searches := b.searches(); searches != 2 { // one of each type
				t.Errorf("%d searches", searches)
			}
			b.wantEvent("InventoryRebuilt", "it was lost, perhaps with the whole status")
			b.wantEvent("Released", "earlier")
			b.check(b.client.Delete(t.Context(), b.get()))
			b.untilGone()
			if left := b.secrets(); len(left) > 0 {
				t.Errorf("%d Secrets are left", len(left))
			}
		})
	}
}

// As long as nothing could be rendered, it is not forgotten that the status was lost.
func TestALostStatusIsNotForgottenWhileNothingCanBeRendered(t *testing.T) {
	var broken atomic.Bool
	b := newBed(t, manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		if broken.Load() {
			return nil, errors.New("it is broken")
		}
		return configMaps(ctx, namespace, name, parameters)
	}), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: many(0, 2)})
	b.until(v1alpha1.StateReady)
	b.patchStatus(statusEmptied)
	b.update(func(w *widget.Widget) { delete(w.Spec.Values, "config-00") })
	broken.Store(true)
	b.until(v1alpha1.StateError)
	broken.Store(false)
	b.until(v1alpha1.StateReady)
	if _, exists := b.configMap("config-00"); exists {
		t.Error("the object that is not desired any more is still there")
	}
}

func TestAComponentThatLostItsStatusIsDeletedWithItsObjects(t *testing.T) {
	none := 0
	for name, test := range map[string]struct {
		values    int
		options   component.ReconcilerOptions
		configure func(b *bed)
		left      int
	}{
		"with kept revisions":     {values: 3},
		"without":                 {values: 3, options: component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: &none}}},
		"an inventory in Secrets": {values: 30},
		"detached":                {values: 30, left: 30, configure: func(b *bed) { b.setPolicy("detach-on-delete") }},
		"after its status was written while nothing was done": {values: 3, configure: func(b *bed) {
			b.patchStatus(statusEmptied)
			b.update(func(w *widget.Widget) { w.Spec.Suspend = true })
			b.until(v1alpha1.StateSuspended)
		}},
		"after its status was written by an error": {values: 3, configure: func(b *bed) {
			b.patchStatus(statusEmptied)
			b.setPolicy("unknown")
			b.until(v1alpha1.StateError)
			b.setPolicy("manage")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), test.options, smallStatus)
			b.create(widget.Spec{Values: many(0, test.values)})
			b.until(v1alpha1.StateReady)
			if test.configure != nil {
				test.configure(b)
			}
			if b.get().Status.Inventory.Count() > 0 {
				b.patchStatus(statusEmptied)
			}
			b.check(b.client.Delete(t.Context(), b.get()))
			b.untilGone()
			list := &corev1.ConfigMapList{}
			b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
			left := 0
			for _, configMap := range list.Items {
				if strings.HasPrefix(configMap.Name, "config-") {
					left++
				}
				if configMap.Labels[operatorName+"/"+vocabulary.LabelOwnerID] != "" {
					t.Errorf("%s still has our label", configMap.Name)
				}
			}
			if secrets := b.secrets(); left != test.left || len(secrets) > 0 {
				t.Errorf("%d objects and %d Secrets are left", left, len(secrets))
			}
		})
	}
}

// shards are two operators of one kind, each with its own components.
type shards struct {
	*bed
	operators map[string]*component.Reconciler[*widget.Widget]
}

// newShards makes a component of shard a with an inventory in Secrets.
func newShards(t *testing.T) *shards {
	t.Helper()
	s := &shards{bed: newBed(t, rendering(), component.ReconcilerOptions{}), operators: map[string]*component.Reconciler[*widget.Widget]{}}
	s.restart("a")
	s.restart("b")
	s.check(s.client.Create(t.Context(), &widget.Widget{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "main", Labels: map[string]string{"shard": "a"}},
		Spec:       widget.Spec{Values: many(0, 30)},
	}))
	s.reconcileUntilReady("a")
	return s
}

// restart makes a new process of the operator of a shard.
func (s *shards) restart(shard string) {
	s.Helper()
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Controller: component.ControllerOptions{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"shard": shard}}},
	})
	component.SetInventoryThreshold(r, 3000)
	s.check(r.SetupWithManager(newManager(s.T, s.env, s.user)))
	s.operators[shard] = r
}

// look lets the operator of a shard reconcile over a component that may be none of its own.
func (s *shards) look(shard string) {
	s.Helper()
	s.reconciler = s.operators[shard]
	s.reconcile()
}

// reconcileUntilReady lets the operator of a shard reconcile until the component is ready.
func (s *shards) reconcileUntilReady(shard string) *widget.Widget {
	s.Helper()
	s.reconciler = s.operators[shard]
	w := s.untilGeneration()
	want := w.Spec.Values
	if w.Status.Inventory.Count() != len(want) || w.Status.Inventory.Chunks == nil || len(s.secrets()) == 0 {
		s.Errorf("%d objects are on record in %d Secrets, want %d", w.Status.Inventory.Count(), len(s.secrets()), len(want))
	}
	for name, value := range many(0, 40) {
		if got, exists := s.configMap(name); exists != (want[name] != "") || exists && got != want[name] {
			s.Errorf("config map %s: there %t, value %q, want %q (%s)", name, exists, got, want[name], value)
		}
	}
	return w
}

// move puts the component into a shard with new values.
func (s *shards) move(shard string, values map[string]string) {
	s.Helper()
	s.update(func(w *widget.Widget) { w.Labels["shard"], w.Spec.Values = shard, values })
}

// untouched checks that nothing at all was written since the last resetRequests.
func (s *shards) untouched() {
	s.Helper()
	if writes := s.writes(); len(writes) > 0 {
		s.Errorf("writes of an operator that the component does not belong to: %v", writes)
	}
}

func TestAComponentThatChangesItsShardLosesNothingOfAnInventoryInSecrets(t *testing.T) {
	for name, seen := range map[string]bool{"and its operator sees it go": true, "and its operator is busy": false} {
		t.Run(name, func(t *testing.T) {
			s := newShards(t)
			before := s.uids("config-20")
			leave := func() {
				s.resetRequests()
				if seen {
					s.look("a")
				}
				s.untouched()
			}
			// It belongs to no shard for a while, and it comes back.
			s.move("none", many(0, 30))
			leave()
			s.look("b")
			s.untouched()
			s.move("a", many(2, 30))
			s.reconcileUntilReady("a")
			// The other operator takes it, changes it and prunes.
			s.move("b", many(4, 32))
			leave()
			s.reconcileUntilReady("b")
			s.move("b", many(6, 34))
			leave()
			s.reconcileUntilReady("b")
			// It comes back to a process that remembers another inventory.
			s.move("a", many(8, 36))
			s.reconcileUntilReady("a")
			s.look("b")
			if after := s.uids("config-20"); after[0] != before[0] {
				t.Error("an object was created anew")
			}
			s.wantNoEvent("InventoryRebuilt")
			s.move("b", many(9, 36))
			leave()
			s.check(s.client.Delete(t.Context(), s.get()))
			s.reconciler = s.operators["b"]
			s.untilGone()
			s.reconciler = s.operators["a"]
			s.untilGone()
			for name := range many(0, 40) {
				if _, exists := s.configMap(name); exists {
					t.Errorf("config map %s is still there", name)
				}
			}
			if left := s.secrets(); len(left) > 0 {
				t.Errorf("%d Secrets are still there", len(left))
			}
		})
	}
}
