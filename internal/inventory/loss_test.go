// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/gzipped"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// spilled returns a fixture with its inventory in Secrets.
func spilled(t *testing.T) (*fixture, []v1alpha1.InventoryItem) {
	t.Helper()
	d, all := newFixture(t), items(0, 20)
	check.NoError(d, d.process(nil).reconcile(t.Context(), all))
	return d, all
}

// full returns a Secret that holds items.
func (d *fixture) full() *corev1.Secret {
	d.Helper()
	for _, s := range d.secrets() {
		if len(s.Data) > 0 {
			return &s
		}
	}
	d.Fatal("no Secret holds items")
	return nil
}

// TestADamagedInventoryIsNoticedAndRebuilt damages a Secret, or the head in the status, which users may be allowed to write.
func TestADamagedInventoryIsNoticedAndRebuilt(t *testing.T) {
	entry := func(content func(d *fixture) []byte) func(d *fixture, s *corev1.Secret) {
		return func(d *fixture, s *corev1.Secret) {
			for key := range s.Data {
				s.Data[key] = content(d)
			}
			check.NoError(d, d.client.Update(d.Context(), s))
		}
	}
	forged := func(forge func(head *v1alpha1.InventoryChunks)) func(d *fixture, s *corev1.Secret) {
		return func(d *fixture, _ *corev1.Secret) {
			c := d.process(nil)
			stored := check.Must(c.stored(d.Context()))(d)
			forge(stored.Chunks)
			check.NoError(d, c.commit(d.Context(), stored))
		}
	}
	type head = v1alpha1.InventoryChunks
	for name, damage := range map[string]struct {
		do func(d *fixture, s *corev1.Secret)
		// why is in the only loss; several parts may be lost of a head that was forged.
		why string
	}{
		"deleted with its finalizer": {func(d *fixture, s *corev1.Secret) {
			s.Finalizers = nil
			check.NoError(d, d.client.Update(d.Context(), s))
			check.NoError(d, d.client.Delete(d.Context(), s))
		}, "does not exist"},
		"emptied": {func(d *fixture, s *corev1.Secret) {
			s.Data = nil
			check.NoError(d, d.client.Update(d.Context(), s))
		}, "has no entry"},
		"other bytes": {entry(func(*fixture) []byte { return []byte("nonsense") }), "not compressed"},
		"other items": {entry(func(d *fixture) []byte {
			encoded, _, err := encode(items(100, 101))
			check.NoError(d, err)
			return gzipped.Pack(distribute(encoded, 1)[0].raw)
		}), "hash"},
		"a bomb":                {entry(func(*fixture) []byte { return gzipped.Pack(make([]byte, maxContent+1000)) }), "unpacks to more than"},
		"negative numbers":      {forged(func(h *head) { h.Generation, h.Current, h.Revision = -1, -1, -1 }), ""},
		"huge numbers":          {forged(func(h *head) { h.Generation, h.Revision = math.MaxInt64, math.MaxInt64 }), ""},
		"another set":           {forged(func(h *head) { h.Generation, h.Current = 7, 7 }), ""},
		"a set that is to come": {forged(func(h *head) { h.Current = 7 }), ""},
		"no chunks":             {forged(func(h *head) { h.Chunks = nil }), ""},
		"too many chunks":       {forged(func(h *head) { h.Chunks = make([]v1alpha1.InventoryChunk, 1000) }), ""},
		"an odd chunk":          {forged(func(h *head) { h.Chunks = h.Chunks[:3] }), ""},
		"a negative count":      {forged(func(h *head) { h.Chunks[0].Count = -3 }), ""},
		"a count too many":      {forged(func(h *head) { h.Chunks[0].Count++ }), ""},
		"another hash":          {forged(func(h *head) { h.Chunks[0].Hash = "0" }), ""},
		"types that are none": {forged(func(h *head) {
			h.Chunks[0].Hash = "0"
			h.Types = append(h.Types, v1alpha1.InventoryType{Kind: "../../x", Version: "v1"}, v1alpha1.InventoryType{})
		}), ""},
		"a namespace": {forged(func(h *head) { h.Namespace = "../kube-system" }), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, all := spilled(t)
			damage.do(d, d.full())
			c := d.process(nil)
			check.NoError(d, c.open(t.Context()))
			losses := c.snapshot.Losses()
			if len(losses) == 0 || damage.why != "" && (len(losses) != 1 || !strings.Contains(losses[0].String(), damage.why)) {
				t.Fatalf("losses %v, want one with %q", losses, damage.why)
			}
			lost := len(all) - len(c.snapshot.Inventory().Items)
			if damage.why != "" && (lost < 1 || lost > len(all)/2) {
				t.Errorf("%d of %d items are lost", lost, len(all))
			}
			if err := c.snapshot.Save(t.Context(), c.snapshot.Inventory(), c.commit); err == nil {
				t.Error("an inventory that lacks items was written")
			}
			check.NoError(d, c.open(t.Context()))
			check.EqualNamed(t, "types to look for", []v1alpha1.InventoryType{{Version: "v1", Kind: "ConfigMap"}}, c.snapshot.Types())
			// What is found besides, and is known not to be in the inventory, is left out.
			check.SameNamed(t, "items were restored", lost, c.snapshot.Restore(all))
			check.NoError(d, c.snapshot.Save(t.Context(), c.snapshot.Inventory(), c.commit))
			next := d.process(nil)
			next.expect(all)
			for _, s := range d.secrets() {
				if s.DeletionTimestamp != nil {
					t.Errorf("Secret %s of the old set stays", s.Name)
				}
			}
			stored := check.Must(next.stored(t.Context()))(d)
			check.NoError(d, next.store.Erase(t.Context(), d.component, stored))
			d.nothingLeft()
		})
	}
}

func TestASecretThatLostItsProtectionGetsItBack(t *testing.T) {
	d, all := spilled(t)
	s := d.full()
	s.Finalizers, s.Labels, s.OwnerReferences = nil, nil, nil
	check.NoError(d, d.client.Update(t.Context(), s))
	d.process(nil).expect(all)
	check.NoError(d, d.client.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	if len(s.Finalizers) != 1 || len(s.Labels) != 1 || len(s.OwnerReferences) != 1 {
		t.Errorf("metadata %+v", s.ObjectMeta)
	}
}

func TestASecretThatIsBeingDeletedIsReplaced(t *testing.T) {
	d, all := spilled(t)
	check.NoError(d, d.client.Delete(t.Context(), d.full()))
	d.process(nil).expect(all)
	check.NoError(d, d.process(nil).reconcile(t.Context(), all))
	d.process(nil).expect(all)
	for _, s := range d.secrets() {
		if s.DeletionTimestamp != nil {
			t.Errorf("Secret %s is still being deleted", s.Name)
		}
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	_, err := NewStore(Options{}).Open(t.Context(), Component{}, v1alpha1.Inventory{Format: v1alpha1.InventoryFormat + 1})
	if _, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(err.Error(), "format 4") || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("error: %v", err)
	}
}

// life is the inventory of a component over time: in the status, in Secrets, changed,
// in more Secrets, in fewer, back in the status, in Secrets again, and empty.
var life = [][]v1alpha1.InventoryItem{
	items(0, 3),
	items(0, 12),
	items(0, 12, 4),
	items(2, 22, 5),
	items(2, 22, 5, 20),
	items(15, 24),
	items(15, 17),
	items(10, 21),
	nil,
}

// live goes through life from a state on. It returns the state that it was in when
// it failed.
func (c *process) live(ctx context.Context, from int) (reached int, err error) {
	for i := from; i < len(life); i++ {
		if err := c.reconcile(ctx, life[i]); err != nil {
			return i, err
		}
	}
	stored, err := c.stored(ctx)
	if err != nil {
		return len(life), err
	}
	return len(life), c.store.Erase(ctx, c.component, stored)
}

// TestAfterACrashBetweenAnyTwoRequestsTheInventoryIsTheOldOrTheNewOne kills the
// process before and after every request of a life.
func TestAfterACrashBetweenAnyTwoRequestsTheInventoryIsTheOldOrTheNewOne(t *testing.T) {
	count := &wire.Gate{}
	whole := newFixture(t)
	check.Must(whole.process(count.Wrap).live(t.Context(), 0))(t)
	whole.nothingLeft()
	cases, ran, crashed := slice.FromEnvironment(t), 0, 0
	requests := len(count.Requests())
	for at := 1; at <= requests; at++ {
		for i, after := range []bool{false, true} {
			if !cases.Has(2*at + i) {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("request %d, answered %t", at, after), func(t *testing.T) {
				d := newFixture(t)
				g := &wire.Gate{At: at, After: after}
				state, err := d.process(g.Wrap).live(t.Context(), 0)
				if err == nil && g.HasCrashed() {
					// The failure of the fatal request is repaired later.
					d.nothingLeftButStrays()
				}
				if g.HasCrashed() {
					crashed++
				}
				next := d.process(nil)
				before := life[max(state-1, 0)]
				if state == 0 {
					before = nil
				}
				next.expect(before, life[min(state, len(life)-1)])
				check.Must(next.live(t.Context(), min(state, len(life)-1)))(t)
				d.nothingLeft()
			})
		}
	}
	t.Logf("%d requests, %d cases, %d of them crashed", requests, ran, crashed)
	if crashed < ran*9/10 {
		t.Errorf("only %d of %d cases crashed", crashed, ran)
	}
}

// nothingLeft: no Secret is left, not even one that is being deleted.
func (d *fixture) nothingLeft() {
	d.Helper()
	for _, s := range d.secrets() {
		d.Errorf("Secret %s is left, finalizers %v", s.Name, s.Finalizers)
	}
}

// nothingLeftButStrays: what is left will be found by the next Erase, because it
// has our label.
func (d *fixture) nothingLeftButStrays() {
	d.Helper()
	for _, s := range d.secrets() {
		if s.Labels[reconcilerName+suffixLabel] != string(d.component.UID) {
			d.Errorf("Secret %s is left without a label", s.Name)
		}
	}
}

// TestAProcessThatWasReplacedHarmsNothing stops a process before each request,
// lets another one work on the inventory, and then the first one goes on.
func TestAProcessThatWasReplacedHarmsNothing(t *testing.T) {
	stories := map[string]struct{ first, old, young []v1alpha1.InventoryItem }{
		"both change the same chunks":       {items(0, 12), items(0, 12, 1, 2, 3), items(0, 12, 1, 2, 4)},
		"the first moves to Secrets":        {items(0, 3), items(0, 20), items(0, 4)},
		"the second moves to Secrets":       {items(0, 3), items(0, 4), items(0, 20)},
		"both move to Secrets":              {items(0, 3), items(0, 20), items(1, 21)},
		"the first moves to the status":     {items(0, 12), items(0, 3), items(0, 12, 1)},
		"the second moves to the status":    {items(0, 12), items(0, 12, 1), items(0, 3)},
		"both need more Secrets":            {items(0, 12), items(0, 24), items(1, 28)},
		"the second needs no change at all": {items(0, 12), items(0, 12, 1), items(0, 12)},
	}
	cases := slice.FromEnvironment(t)
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			for at, paused := 1, true; paused; at++ {
				if !cases.Has(at) {
					continue
				}
				paused = false
				d := newFixture(t)
				check.NoError(d, d.process(nil).reconcile(t.Context(), story.first))
				young := d.process(nil)
				g := &wire.Gate{At: at, Happens: func() error {
					paused = true
					return young.reconcile(t.Context(), story.young)
				}}
				oldErr := d.process(g.Wrap).reconcile(t.Context(), story.old)
				if !paused {
					break
				}
				possible := [][]v1alpha1.InventoryItem{story.young}
				if oldErr == nil {
					possible = [][]v1alpha1.InventoryItem{story.old}
				}
				reader := d.process(nil)
				reader.expect(possible...)
				check.NoError(d, reader.snapshot.Save(t.Context(), inventoryOf(story.first), reader.commit))
				d.process(nil).expect(story.first)
				stored := check.Must(reader.stored(t.Context()))(d)
				check.NoError(d, reader.store.Erase(t.Context(), d.component, stored))
				d.nothingLeft()
				if t.Failed() {
					t.Fatalf("when the first process was stopped before request %d", at)
				}
			}
		})
	}
}
