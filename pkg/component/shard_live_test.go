// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

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
