// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestWhatWasFoundOutHoldsAsLongAsTheComponentIsTheSame(t *testing.T) {
	now := time.Unix(1000, 0)
	component := func(change func(*widget)) *widget {
		w := &widget{}
		w.Namespace, w.Name, w.UID, w.Generation = "shop", "main", "1", 3
		w.Status.ProcessingDigest = "digest/manifests"
		change(w)
		return w
	}
	unchanged := func(*widget) {}
	m := newMemory()
	known := prepared{
		set: set{digest: "digest"}, directives: directives{root: rootOf(component(unchanged)), until: now.Add(time.Minute)},
	}
	m.keepRendered(client.ObjectKeyFromObject(component(unchanged)), known)
	for name, tc := range map[string]struct {
		component *widget
		now       time.Time
		want      bool
	}{
		"the same":                    {component: component(unchanged), now: now, want: true},
		"another spec":                {component: component(func(w *widget) { w.Generation = 4 }), now: now},
		"made anew":                   {component: component(func(w *widget) { w.UID = "2" }), now: now},
		"another annotation":          {component: component(func(w *widget) { w.Annotations = map[string]string{"tier": "gold"} }), now: now},
		"another label":               {component: component(func(w *widget) { w.Labels = map[string]string{"tier": "gold"} }), now: now},
		"another client wrote status": {component: component(func(w *widget) { w.Status.ProcessingDigest = "" }), now: now},
		"another component":           {component: component(func(w *widget) { w.Name = "other" }), now: now},
		"a full reconcile is due":     {component: component(unchanged), now: now.Add(time.Minute)},
	} {
		if _, got := m.renderedFor(tc.component, tc.now); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	m := newMemory()
	for i := range 10 {
		m.keepRendered(client.ObjectKey{Name: string(rune('a' + i))}, prepared{size: maxRendered / 4})
		if m.rendered > maxRendered {
			t.Fatalf("%d bytes are kept", m.rendered)
		}
	}
	kept := 0
	for _, known := range m.byKey {
		if known.cache.size > 0 {
			kept++
		}
	}
	if kept != 4 {
		t.Errorf("the caches of %d components are kept", kept)
	}
	m.keepRendered(client.ObjectKey{Name: "large"}, prepared{size: maxRendered + 1})
	if m.cacheOf(client.ObjectKey{Name: "large"}).size > 0 {
		t.Error("what is too much is kept")
	}
	for key := range m.byKey {
		m.deleteEntry(key)
	}
	if len(m.byKey) > 0 {
		t.Errorf("%d components are remembered", len(m.byKey))
	}
	if m.rendered != 0 {
		t.Errorf("%d bytes are left", m.rendered)
	}
}

// The causes of a full reconcile are dropped when it starts, so what was rendered before them
// must not be used after it has failed.
func TestAFullReconcileThatFailsEarlyDropsWhatWasRendered(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.digestKey, h.revisions.DigestKey = brokenKey{}, brokenKey{}.Get
	obj := withRefs(widgetReferences{})
	obj.Status.ProcessingDigest, obj.Status.Inventory.Operator = "digest/manifests", &v1alpha1.InventoryOperator{Namespace: "red"}
	key := client.ObjectKeyFromObject(obj)
	h.memory.keepRendered(key, prepared{set: set{digest: "digest"}, directives: directives{root: rootOf(obj), until: h.now().Add(time.Minute)}})
	if _, known := h.memory.renderedFor(obj, h.now()); !known {
		t.Fatal("nothing is known before the reconcile")
	}
	if _, err := h.applier.createOrUpdate(t.Context(), obj, func(context.Context) error { return nil }); err == nil {
		t.Error("the reconcile has not failed")
	}
	if _, known := h.memory.renderedFor(obj, h.now()); known {
		t.Error("the next reconcile may use what was rendered before")
	}
}

type brokenKey struct{}

func (brokenKey) Get(context.Context) ([]byte, error) {
	return nil, errors.New("the Secret cannot be read")
}

// watchReferences returns a widget that refers to a ConfigMap, and lets the handler watch what it refers to.
func watchReferences(t *testing.T, h *handler) *widget {
	t.Helper()
	h.local = fake.NewFakeClient(configMapObject("settings", map[string]string{"a": "1"}))
	var err error
	ignore := func(client.ObjectKey) {}
	if h.watches, err = targets.NewWatches(&rest.Config{Host: "http://127.0.0.1:1"}, ignore, ignore); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.watches.Run(t.Context()) })
	return withRefs(widgetReferences{Settings: &ConfigMapReference{Name: "settings"}})
}

// What the hooks of a fast path see was not rendered, so a change of it still counts.
func TestTheHooksOfTheFastPathDoNotHideAChangeOfAReference(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	obj, seen := watchReferences(t, h), ""
	h.code.hooks[postReconcile] = hooksOf(func(_ context.Context, _ client.Client, w *widget) error {
		seen = w.Spec.Refs.Settings.Data()["a"]
		return nil
	})
	if err := h.applier.hooksAfterFastPath(h.basicContext(t.Context()), obj); err != nil || seen != "1" {
		t.Errorf("the hook saw %q, %v", seen, err)
	}
	if waiters := h.watches.ReferenceOwners(); waiters != 0 {
		t.Errorf("on the fast path %d components refer to something", waiters)
	}
	h.loadReferences(t.Context(), obj)
	if waiters := h.watches.ReferenceOwners(); waiters != 1 {
		t.Errorf("after a full reconcile %d components refer to something", waiters)
	}
	obj.Spec.Refs = nil
	h.loadReferences(t.Context(), obj)
	if waiters := h.watches.ReferenceOwners(); waiters != 0 {
		t.Errorf("without a reference %d components refer to something", waiters)
	}
}

// It may be that types come to be served while nothing but dependents change.
func TestTheFastPathBecomesAFullReconcileIfTheCacheIsOutdated(t *testing.T) {
	engine := &outdated{fakeEngine: &fakeEngine{outcome: reconciler.Outcome{Total: 1, Settled: 1, Desired: &reconciler.DesiredSet{}}}}
	h, _ := testHandler(t, engine.fakeEngine)
	h.targets.(*fakeTargets).target.Engine = engine
	h.triggers.(*fakeTriggers).fast = true
	obj := newWidget()
	for range 2 {
		if _, err := h.applier.createOrUpdate(t.Context(), obj, noCommit); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(engine.applied); got != 2 || engine.light != 1 {
		t.Errorf("%d full reconciles and %d light ones, want 2 and 1", got, engine.light)
	}
}

func TestTheReconcileOfAnEditIsUrgent(t *testing.T) {
	for _, urgent := range []bool{false, true} {
		engine := &fakeEngine{}
		h, _ := testHandler(t, engine)
		h.triggers.(*fakeTriggers).urgent = urgent
		if _, err := h.applier.createOrUpdate(t.Context(), newWidget(), noCommit); err != nil {
			t.Fatal(err)
		}
		if len(engine.applied) != 1 || engine.applied[0].Urgent != urgent {
			t.Errorf("of an edit that comes first (%t), the request is %+v", urgent, engine.applied)
		}
	}
}

// outdated is an engine that what was wanted before is never enough for.
type outdated struct {
	*fakeEngine
	light int
}

func (e *outdated) Apply(ctx context.Context, request reconciler.ApplyRequest) (reconciler.Outcome, error) {
	if request.Desired != nil {
		e.light++
		return reconciler.Outcome{Inventory: request.Inventory}, reconciler.ErrOutdated
	}
	return e.fakeEngine.Apply(ctx, request)
}

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
		check(t, tc.end(h, obj))
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
