// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// reduced makes the observation of an object of the tests.
func reduced(live *unstructured.Unstructured) plan.Observation {
	content, _, _ := unstructured.NestedString(live.Object, "spec")
	status, _, _ := unstructured.NestedString(live.Object, "status")
	if content == "panic" {
		panic("no such content")
	}
	o := plan.Observation{
		Existence: plan.Present, UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(),
		Ownership: plan.Ownership{OwnerID: live.GetLabels()[label]}, ObservedHash: content,
		Finalizers: live.GetFinalizers(), Status: plan.Status{Readiness: plan.Ready, Message: status},
		Finish: map[string]plan.Finish{"runs": plan.Unfinished, "complete": plan.FinishComplete, "failed": plan.FinishFailed}[status],
	}
	if deleting := live.GetDeletionTimestamp(); deleting != nil {
		o.DeletionTimestamp = deleting.Time
	}
	return o
}

// answer is the answer to a write.
func answer(live *unstructured.Unstructured) *plan.Observation {
	o := reduced(live)
	return &o
}

// notifications collects changes.
type notifications struct {
	mu      sync.Mutex
	changes []Change
}

func (c *notifications) add(change Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes = append(c.changes, change)
}

// drain returns and removes the notifications, in an order that does not depend on chance.
func (c *notifications) drain() []string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var texts []string
	for _, change := range c.changes {
		texts = append(texts, change.Owner+": "+change.Key.Name+" "+string(change.What))
	}
	c.changes = nil
	slices.SortFunc(texts, cmp.Compare)
	return texts
}

// bed is a store on a server.
type bed struct {
	*testing.T
	server   *server
	store    *Store
	notified *notifications
}

// inBubble runs a test in time of its own, which stands still until nothing goes on.
// If anything goes on when the store is closed, the test fails.
func inBubble(t *testing.T, options Options, test func(*bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{T: t, server: newServer(), notified: &notifications{}}
		options.Label, options.Reduce, options.Changed = label, reduced, b.notified.add
		b.store = newStore(b.server, options)
		defer b.store.Close()
		test(b)
	})
}

// keep watches the places for an owner and waits.
func (b *bed) keep(owner string, places ...Place) {
	b.Helper()
	b.store.Keep(owner, places)
	b.store.Wait(b.Context(), places)
	synctest.Wait()
}

// expect checks the notifications.
func (b *bed) expect(what string, want ...string) {
	b.Helper()
	check.EqualNamed(b, what+": notified", want, b.notified.drain())
}

// sees checks the content of a record.
func (b *bed) sees(place Place, name, content string) {
	b.Helper()
	synctest.Wait()
	o, known, watched := b.store.Look(place, name)
	if !known || !watched || o.ObservedHash != content || o.Existence != plan.Present {
		b.Errorf("%s: got %q, known %t, watched %t, want %q", name, o.ObservedHash, known, watched, content)
	}
}

// misses checks that there is no record at a place, and whether the place is watched.
func (b *bed) misses(place Place, name string, watched bool) {
	b.Helper()
	synctest.Wait()
	if o, known, looked := b.store.Look(place, name); known || looked != watched {
		b.Errorf("%s: known %t (%q), watched %t, want watched %t", name, known, o.ObservedHash, looked, watched)
	}
}

// asked checks what the server was asked.
func (b *bed) asked(what string, want ...string) {
	b.Helper()
	synctest.Wait()
	check.EqualNamed(b, what+": requests", want, b.server.asked())
}

// sizes count what a store holds.
type sizes struct{ reflectors, records, tombstones, writing, refused int }

func sizesOf(s *Store) sizes {
	s.mu.RLock()
	defer s.mu.RUnlock()
	counted := sizes{reflectors: s.reflectors}
	for _, k := range s.kinds {
		for _, space := range k.records.spaces {
			counted.records += len(space)
		}
		counted.tombstones += len(k.records.tombstones.entries)
		counted.writing += len(k.records.writes)
		counted.refused += len(k.refusals)
	}
	return counted
}

// advance lets time pass.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
