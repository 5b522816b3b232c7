// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// fakeEngine answers with what the test says, after making its inventory durable.
type fakeEngine struct {
	outcome  reconciler.Outcome
	err      error
	blockers []reconciler.Blocker
	record   bool
	echo     bool // the inventory of the outcome is that of the request

	applied []reconciler.ApplyRequest
	deleted []reconciler.DeleteRequest
}

func (e *fakeEngine) Apply(ctx context.Context, request reconciler.ApplyRequest) (reconciler.Outcome, error) {
	e.applied = append(e.applied, request)
	if e.record {
		if err := request.Record(ctx, e.outcome.Inventory); err != nil {
			return reconciler.Outcome{Inventory: request.Inventory}, err
		}
	}
	if e.echo {
		return reconciler.Outcome{Inventory: request.Inventory}, e.err
	}
	return e.outcome, e.err
}

func (e *fakeEngine) Delete(_ context.Context, request reconciler.DeleteRequest) (reconciler.Outcome, error) {
	e.deleted = append(e.deleted, request)
	return e.outcome, e.err
}

func (e *fakeEngine) Recover(context.Context, reconciler.RecoverRequest) ([]reconciler.InventoryItem, error) {
	return nil, nil
}

func (e *fakeEngine) DeletionBlockers(context.Context, reconciler.DeleteRequest) ([]reconciler.Blocker, error) {
	return e.blockers, nil
}

// fakeTargets gives everybody the same engine, and remembers who asked.
type fakeTargets struct {
	target connection
	asked  []identity
	err    error

	forgotten []reconciler.Owner
}

func (f *fakeTargets) enter(id identity, _ client.ObjectKey) (connection, error) {
	f.asked = append(f.asked, id)
	return f.target, f.err
}

func (*fakeTargets) settle(reconciler.Owner, engine) {}

func (f *fakeTargets) forget(owner reconciler.Owner) { f.forgotten = append(f.forgotten, owner) }

func (*fakeEngine) StopWatching(reconciler.Owner) {}
func (*fakeEngine) IsWatching() bool              { return false }
func (*fakeEngine) Close()                        {}

// testHandler returns a handler without a cluster, its engine and its events.
func testHandler(t testing.TB, engine *fakeEngine) (*handler[*widget], *eventLog) {
	t.Helper()
	log := &eventLog{}
	now := func() time.Time { return time.Unix(1000, 0) }
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: widgetKind.Group, Version: "v1"}})
	mapper.Add(widgetKind.WithVersion("v1"), meta.RESTScopeNamespace)
	return &handler[*widget]{
		mapper:    mapper,
		settings:  testSettings(t, ReconcilerOptions{}),
		generator: manifests.GeneratorFunc(nothing),
		hooks:     map[hookPoint][]HookFunc[*widget]{},
		kind:      widgetKind.WithVersion("v1"),
		finder:    finderFor[*widget](),
		digestKey: fixedKey("0123456789abcdef"),
		targets:   &fakeTargets{target: connection{engine: engine}},
		recorder:  events.Bounded(log),
		now:       now,
		inventory: inventory.NewStore(inventory.Options{Name: "test.corbel.run"}),
		guard:     guard.New(gracePeriod),
		memory:    newMemory(),
		left:      backoff.NewActivity[client.ObjectKey](leftBase, leftLimit),
		telemetry: newTelemetry("widgets", nil),
		begins:    func(client.ObjectKey) bool { return false },
		later:     func(client.ObjectKey, time.Duration) {},

		hookTimeout:     time.Minute,
		generateTimeout: time.Minute,
		loadTimeout:     time.Minute,
	}, log
}

// fixedKey is a key that need not be read.
type fixedKey string

func (k fixedKey) get(context.Context) ([]byte, error) { return []byte(k), nil }

func nothing(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
	return nil, nil
}

// noCommit is a commit that succeeds.
func noCommit(context.Context) error { return nil }
