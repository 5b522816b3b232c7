// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
)

func TestAProcessThatStandsByKnowsWhatNoLeaderHasHandled(t *testing.T) {
	q := newStandbyQueue(t)
	leader := q.notes.NoteLeader()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		q.listed(name)
	}
	update := func(name string, change func(*metav1.PartialObjectMetadata)) {
		before, after := metadataOf(name), metadataOf(name)
		change(after)
		e := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
		if !leader.Update(e) {
			t.Errorf("an event about %s does not pass", name)
		}
		if after.Generation != 0 && q.events.Update(e) {
			(&handler.EnqueueRequestForObject{}).Update(t.Context(), e, q.PriorityQueue)
		}
	}
	edit := func(object *metav1.PartialObjectMetadata) { object.Generation++ }
	status := func(object *metav1.PartialObjectMetadata) { object.ResourceVersion = "2" }
	update("b", edit)
	update("b", status)
	update("c", edit)
	update("c", func(object *metav1.PartialObjectMetadata) { object.Annotations = map[string]string{"preview": "1"} }) // not by the leader
	if leader.Delete(event.DeleteEvent{Object: metadataOf("d")}) {
		t.Error("the end of a component that the leader has finished passes")
	}
	take := func() string {
		item, _ := q.Get()
		return item.Name
	}
	if first := take(); first != "c" {
		t.Errorf("the first reconcile is of %s, and not of the edit that no leader has handled", first)
	}
	rest := []string{take(), take(), take()}
	if slices.Sort(rest); !cmp.Equal(rest, []string{"a", "b", "e"}) {
		t.Errorf("then come %v", rest)
	}
	if !q.notes.IsUrgent(keyOf("c")) || q.notes.IsUrgent(keyOf("b")) {
		t.Error("the edit that came first is not urgent, or another one is")
	}
	q.Done(requestFor("c"))
	if q.notes.IsUrgent(keyOf("c")) {
		t.Error("an edit that was handled is urgent")
	}
	if !leader.Delete(event.DeleteEvent{Object: metadataOf("a")}) {
		t.Error("a process that leads does not see the end of a component")
	}
	if n := q.Len(); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

func TestWorkersThatGoThroughAFleetHandleEachComponentOnce(t *testing.T) {
	const fleet = 3000
	q := newStandbyQueue(t)
	for i := range fleet {
		q.listed(fmt.Sprint("w", i))
	}
	q.notes.queue.lead()
	q.elapse(2 * promoteAfter)
	var lock sync.Mutex
	handled, twice := map[string]bool{}, 0
	var workers sync.WaitGroup
	for range 5 {
		workers.Go(func() {
			for range fleet / 5 {
				item, _ := q.Get()
				lock.Lock()
				if handled[item.Name] {
					twice++
				}
				handled[item.Name] = true
				lock.Unlock()
				q.Done(item)
			}
		})
	}
	workers.Wait()
	if twice > 0 {
		t.Errorf("%d were handled twice", twice)
	}
}
