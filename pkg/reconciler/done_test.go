// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestNoOutcomeOfACallWithAnErrorIsDone(t *testing.T) {
	b := newBench(t)
	between := b.interpose(t, reconciler.ReconcilerOptions{})
	b.mustApply(config("a", "1", "update-policy", "recreate"))
	valid := func() reconciler.ApplyRequest {
		request := b.request(config("a", "1", "update-policy", "recreate"))
		request.Inventory = b.inventory
		return request
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for name, change := range map[string]func(*reconciler.ApplyRequest) context.Context{
		"an invalid object": func(r *reconciler.ApplyRequest) context.Context {
			r.Objects = append(r.Objects, r.Objects[0])
			return t.Context()
		},
		"no object":             func(r *reconciler.ApplyRequest) context.Context { r.Objects = nil; return t.Context() },
		"an owner without name": func(r *reconciler.ApplyRequest) context.Context { r.Owner.Name = ""; return t.Context() },
		"an unknown policy":     func(r *reconciler.ApplyRequest) context.Context { r.Policies.Update = "x"; return t.Context() },
		"a newer inventory":     func(r *reconciler.ApplyRequest) context.Context { r.Inventory.Format = 99; return t.Context() },
		"another cluster":       func(r *reconciler.ApplyRequest) context.Context { r.Inventory.Target = "x"; return t.Context() },
		"a cancelled context":   func(*reconciler.ApplyRequest) context.Context { return ended },
	} {
		request := valid()
		ctx := change(&request)
		if outcome, err := b.engine.Apply(ctx, request); err == nil || outcome.Done() {
			t.Errorf("apply with %s: %v, done: %t", name, err, outcome.Done())
		}
	}
	for name, request := range map[string]reconciler.DeleteRequest{
		"hooks that were not rendered": {Owner: b.owner(), Inventory: v1alpha1.Inventory{Items: b.inventory.Items, DeleteHooks: true}},
		"a newer inventory":            {Owner: b.owner(), Inventory: v1alpha1.Inventory{Format: v1alpha1.InventoryFormat + 1}},
		"an owner without kind":        {Owner: reconciler.Owner{Name: "main"}},
	} {
		if outcome, err := b.engine.Delete(t.Context(), request); err == nil || outcome.Done() {
			t.Errorf("delete with %s: %v, done: %t", name, err, outcome.Done())
		}
	}
	// A recreation that is cut short has deleted the object and has nothing left to wait for.
	ctx, cut := context.WithCancel(t.Context())
	happened := between.before("POST /api/v1/namespaces/"+b.namespace+"/configmaps", cut)
	request := b.request(config("a", "2", "update-policy", "recreate"))
	request.Inventory = b.inventory
	if outcome, err := b.engine.Apply(ctx, request); err == nil || outcome.Done() || !happened() {
		t.Errorf("a cancelled recreation: %v, done: %t, waiting for %v", err, outcome.Done(), outcome.Waiting)
	}
}
