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
)

// branch is a handler with a vault, on a server in memory.
type branch struct {
	*testing.T
	bank    *bank
	server  client.Client
	now     time.Time
	tick    func() // is called after each look at the clock
	loop    *lifecycle.Reconciler[*vault]
	options external.Options
}

var branchKey = client.ObjectKey{Namespace: "ns", Name: "a"}

func newBranch(t *testing.T, options external.Options, wrap func(*teller) external.Client[*vault]) *branch {
	t.Helper()
	b := &branch{T: t, bank: newBank(false), now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC), options: options}
	v := &vault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", UID: "uid-1", Generation: 1}, Spec: vaultSpec{Size: 1}}
	b.server = fake.NewClientBuilder().WithScheme(vaultScheme()).WithStatusSubresource(v).WithObjects(v).Build()
	b.options.Clock = func() time.Time {
		now := b.now
		if b.tick != nil {
			b.tick()
		}
		return now
	}
	var api external.Client[*vault] = &teller{bank: b.bank, wire: direct}
	if wrap != nil {
		api = wrap(api.(*teller))
	}
	loop, err := lifecycle.NewReconciler(external.New(api, b.options), lifecycle.Options[*vault]{Name: "test.corbel.run", Client: b.server, Jitter: -1})
	if err != nil {
		t.Fatal(err)
	}
	b.loop = loop
	return b
}

// reconcile runs one reconcile, and returns the vault if it is there.
func (b *branch) reconcile() (*vault, time.Duration, error) {
	b.Helper()
	out, err := b.loop.Reconcile(b.Context(), reconcile.Request{NamespacedName: branchKey})
	v := b.get()
	if v != nil {
		conditionstest.Check(b, v)
	}
	return v, out.RequeueAfter, err
}

func (b *branch) get() *vault {
	b.Helper()
	v := &vault{}
	err := b.server.Get(b.Context(), branchKey, v)
	if client.IgnoreNotFound(err) != nil {
		b.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return v
}

func (b *branch) update(change func(*vault)) {
	b.Helper()
	v := b.get()
	change(v)
	if err := b.server.Update(b.Context(), v); err != nil {
		b.Fatal(err)
	}
}

func (b *branch) want(v *vault, reason string, phase external.Phase, created, there int) {
	b.Helper()
	gotCreated, gotThere, _ := b.bank.count()
	ready := conditions.Get(v, "Ready")
	if ready.Reason != reason || v.Status.External.Phase != phase || gotCreated != created || gotThere != there {
		b.Errorf("Ready %+v, record %+v, %d rooms created, %d there", ready, v.Status.External, gotCreated, gotThere)
	}
}
