// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// The process ends at any request of a handover. Then the component is deleted by another one, which does not know who waits.
func TestACrashInAHandoverKeepsWhatIsGivenAway(t *testing.T) {
	for name, crash := range map[string]struct {
		at       string // the first request that is not sent; empty if the record is not made durable
		recorded bool
	}{
		"before the record is durable": {},
		"before the request":           {at: "PATCH", recorded: true},
		"before the answer is used":    {at: "never", recorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			between := b.interpose(t, reconciler.ReconcilerOptions{})
			b.mustApply(config("shared", "1"), config("mine", "1"))
			b.letOtherWait()
			durable := b.inventory
			between.before(crash.at+" /api/v1/namespaces/"+b.namespace+"/configmaps/shared", func() { between.dead.Store(true) })
			request := b.request(config("mine", "1"))
			request.Record = func(_ context.Context, inventory v1alpha1.Inventory) error {
				if crash.at == "" {
					return errors.New("it has ended")
				}
				durable = inventory
				return nil
			}
			_, _ = b.engine.Apply(t.Context(), request)
			b.engine, b.inventory = newEngine(t, reconciler.ReconcilerOptions{}), durable
			for {
				outcome, err := b.delete()
				if err != nil {
					t.Fatal(err)
				}
				if outcome.Done() {
					break
				}
			}
			if kept := b.get("shared") != nil; kept != crash.recorded || b.get("mine") != nil {
				t.Errorf("kept: %t", kept)
			}
		})
	}
}

// requestOfOther is the request of another owner, which keeps its own record.
func (b *bench) requestOfOther(objects ...client.Object) *reconciler.ApplyRequest {
	other := b.request(objects...)
	other.Owner.Name, other.Owner.UID, other.Inventory = "other", "2", v1alpha1.Inventory{}
	other.Record = func(_ context.Context, inventory v1alpha1.Inventory) error {
		other.Inventory = inventory
		return nil
	}
	return &other
}

// letOtherWait lets another owner wait for the object shared, which is ours.
func (b *bench) letOtherWait() {
	b.t.Helper()
	other := b.requestOfOther(config("shared", "2"))
	if _, err := b.engine.Apply(b.t.Context(), *other); err == nil {
		b.t.Error("the other owner adopted it")
	}
}
