// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/slice"
)

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
	count := &gate{}
	whole := newFixture(t)
	if _, err := whole.process(count.wrap).live(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	whole.nothingLeft()
	cases, ran, crashed := slice.FromEnvironment(t), 0, 0
	for at := 1; at <= count.count; at++ {
		for i, after := range []bool{false, true} {
			if !cases.Has(2*at + i) {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("request %d, answered %t", at, after), func(t *testing.T) {
				d := newFixture(t)
				g := &gate{at: at}
				if after {
					g.after = g.die
				} else {
					g.before = g.die
				}
				state, err := d.process(g.wrap).live(t.Context(), 0)
				if err == nil && g.hasCrashed() {
					// The failure of the fatal request is repaired later.
					d.nothingLeftButStrays()
				}
				if g.hasCrashed() {
					crashed++
				}
				next := d.process(nil)
				before := life[max(state-1, 0)]
				if state == 0 {
					before = nil
				}
				next.expect(before, life[min(state, len(life)-1)])
				if _, err := next.live(t.Context(), min(state, len(life)-1)); err != nil {
					t.Fatal(err)
				}
				d.nothingLeft()
			})
		}
	}
	t.Logf("%d requests, %d cases, %d of them crashed", count.count, ran, crashed)
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
				d.check(d.process(nil).reconcile(t.Context(), story.first))
				young := d.process(nil)
				g := &gate{at: at, before: func() error {
					paused = true
					return young.reconcile(t.Context(), story.young)
				}}
				oldErr := d.process(g.wrap).reconcile(t.Context(), story.old)
				if !paused {
					break
				}
				possible := [][]v1alpha1.InventoryItem{story.young}
				if oldErr == nil {
					possible = [][]v1alpha1.InventoryItem{story.old}
				}
				reader := d.process(nil)
				reader.expect(possible...)
				d.check(reader.snapshot.Save(t.Context(), inventoryOf(story.first), reader.commit))
				d.process(nil).expect(story.first)
				stored, err := reader.stored(t.Context())
				d.check(err)
				d.check(reader.store.Erase(t.Context(), d.component, stored))
				d.nothingLeft()
				if t.Failed() {
					t.Fatalf("when the first process was stopped before request %d", at)
				}
			}
		})
	}
}
