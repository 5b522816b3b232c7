// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/test/check"
)

// town is a server in memory with a vault, or without one, and a bank.
type town struct {
	*testing.T
	bank   *bank
	server client.WithWatch
}

var vaultKey = client.ObjectKey{Namespace: "ns", Name: "a"}

func newVault() *vault {
	return &vault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-1", Generation: 1}, Spec: vaultSpec{Size: 1}}
}

func newTown(t *testing.T, forgetful bool, objects ...client.Object) *town {
	server := fake.NewClientBuilder().WithScheme(vaultScheme()).WithStatusSubresource(&vault{}).WithObjects(objects...).Build()
	return &town{T: t, bank: newBank(forgetful), server: server}
}

// get returns the vault, or nil if it is gone.
func (w *town) get() *vault {
	w.Helper()
	v := &vault{}
	err := w.server.Get(w.Context(), vaultKey, v)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return v
}

// change changes the vault as its user, if it is there.
func (w *town) change(how func(*vault)) {
	w.Helper()
	v := w.get()
	if v == nil {
		return
	}
	spec := v.Spec
	how(v)
	if v.Spec != spec {
		v.Generation++
	}
	check.NoError(w, w.server.Update(w.Context(), v))
}

// changeStatus changes the status of the vault as another client, if it is there.
func (w *town) changeStatus(how func(*vault)) *vault {
	w.Helper()
	v := w.get()
	if v == nil {
		return nil
	}
	how(v)
	check.NoError(w, w.server.Status().Update(w.Context(), v))
	return v
}

// delete deletes the vault, if it is there.
func (w *town) delete() {
	w.Helper()
	if v := w.get(); v != nil {
		check.NoError(w, w.server.Delete(w.Context(), v))
	}
}

func (w *town) operator(api external.Client[*vault], options external.Options, c client.Client) *lifecycle.Reconciler[*vault] {
	w.Helper()
	loop, err := lifecycle.NewReconciler(external.New(api, options), lifecycle.Options[*vault]{Name: "test.corbel.run", Client: c, Jitter: -1})
	check.NoError(w, err)
	return loop
}

// branch is a handler with a vault, on a server in memory.
type branch struct {
	*town
	now  time.Time
	tick func() // is called after each look at the clock
	loop *lifecycle.Reconciler[*vault]
}

func newBranch(t *testing.T, options external.Options, wrap func(*teller) external.Client[*vault]) *branch {
	t.Helper()
	b := &branch{town: newTown(t, false, newVault()), now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)}
	options.Clock = func() time.Time {
		now := b.now
		if b.tick != nil {
			b.tick()
		}
		return now
	}
	var api external.Client[*vault] = &teller{bank: b.bank}
	if wrap != nil {
		api = wrap(api.(*teller))
	}
	b.loop = b.operator(api, options, b.server)
	return b
}

// reconcile runs one reconcile, and returns the vault if it is there.
func (b *branch) reconcile() (*vault, time.Duration, error) {
	b.Helper()
	out, err := b.loop.Reconcile(b.Context(), reconcile.Request{NamespacedName: vaultKey})
	v := b.get()
	if v != nil {
		conditionstest.Check(b, v)
	}
	return v, out.RequeueAfter, err
}

func (b *branch) want(v *vault, reason string, phase external.Phase, created, there int) {
	b.Helper()
	gotCreated, gotThere, _ := b.bank.count()
	ready := conditions.Get(v, "Ready")
	if ready.Reason != reason || v.Status.External.Phase != phase || gotCreated != created || gotThere != there {
		b.Errorf("Ready %+v, record %+v, %d rooms created, %d there", ready, v.Status.External, gotCreated, gotThere)
	}
}
