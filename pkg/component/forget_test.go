// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// What was rendered for a component, and the watches that would requeue it, end with it.
func TestNothingIsKeptForReconcilesThatDoNotFollow(t *testing.T) {
	for name, tc := range map[string]struct {
		end func(*handler, *widget) error
		// unwatched: no change of its dependents requeues it any more; over: no later reconcile
		// uses the causes of earlier requeues.
		unwatched, over bool
	}{
		"it is gone, or belongs to another process": {func(h *handler, obj *widget) error {
			h.forgetComponent(t.Context(), client.ObjectKeyFromObject(obj))
			return nil
		}, true, true},
		"it is suspended": {func(h *handler, obj *widget) error { h.suspend(obj); return nil }, true, false},
		"it is being deleted": {func(h *handler, obj *widget) error {
			_, err := h.deletion.delete(t.Context(), obj, noCommit)
			return err
		}, false, false},
	} {
		h, _ := testHandler(t, &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1, Desired: &reconciler.DesiredSet{}}})
		queue := trigger.New()
		h.triggers = queue
		obj := watchReferences(t, h)
		h.loadReferences(t.Context(), obj)
		key := client.ObjectKeyFromObject(obj)
		h.memory.keepRendered(key, prepared{size: 1})
		queue.DependentChanged(h.self.Owner(obj), reconciler.Change{What: reconciler.EventContent})
		if err := tc.end(h, obj); err != nil {
			t.Fatal(err)
		}
		if h.memory.cacheOf(key).size > 0 {
			t.Errorf("%s: what was rendered is kept", name)
		}
		if refers := h.watches.ReferenceOwners() > 0; refers == tc.unwatched {
			t.Errorf("%s: it depends on what it refers to: %t", name, refers)
		}
		if forgotten := slices.Contains(h.targets.(*fakeTargets).forgotten, h.self.OwnerOf(key)); forgotten != tc.unwatched {
			t.Errorf("%s: its watches have ended: %t", name, forgotten)
		}
		if tc.over && queue.StartReconcile(key) {
			t.Errorf("%s: what its next reconcile would be for is kept", name)
		}
	}
}
