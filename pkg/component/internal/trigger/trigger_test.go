// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

func requestFor(name string) ctrl.Request { return ctrl.Request{NamespacedName: keyOf(name)} }
func keyOf(name string) client.ObjectKey  { return client.ObjectKey{Namespace: "shop", Name: name} }

func metadataOf(name string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
}

// controllerQueue is the queue of a controller with its two sources: events of components and the Queue.
type controllerQueue struct {
	priorityqueue.PriorityQueue[ctrl.Request]
	notes  *Queue
	events predicate.Predicate
}

func newControllerQueue(t *testing.T) *controllerQueue {
	t.Helper()
	queue := newStandbyQueue(t)
	queue.notes.queue.Load().lead()
	return queue
}

// newStandbyQueue returns the queue of a process that does not lead yet.
func newStandbyQueue(t *testing.T) *controllerQueue {
	t.Helper()
	notes := New()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[ctrl.Request](time.Millisecond, time.Second)
	queue, ok := notes.Prioritized("test", limiter).(priorityqueue.PriorityQueue[ctrl.Request])
	if !ok {
		t.Fatal("the queue has no priorities")
	}
	t.Cleanup(queue.ShutDown)
	return &controllerQueue{queue, notes, notes.NoteEdits()}
}

// elapse sets the clock of the queue forward.
func (q *controllerQueue) elapse(by time.Duration) {
	q.PriorityQueue.(*prioritized).now = func() time.Time { return time.Now().Add(by) }
}

// listed is what the watch of components shows first.
func (q *controllerQueue) listed(name string) {
	e := event.CreateEvent{Object: metadataOf(name), IsInInitialList: true}
	if q.events.Create(e) {
		(&handler.EnqueueRequestForObject{}).Create(context.Background(), e, q.PriorityQueue)
	}
}

func (q *controllerQueue) created(name string) {
	e := event.CreateEvent{Object: metadataOf(name)}
	if q.events.Create(e) {
		(&handler.EnqueueRequestForObject{}).Create(context.Background(), e, q.PriorityQueue)
	}
}

func (q *controllerQueue) edited(name string) {
	e := event.UpdateEvent{ObjectOld: metadataOf(name), ObjectNew: metadataOf(name)}
	e.ObjectNew.SetResourceVersion("2")
	if q.events.Update(e) {
		(&handler.EnqueueRequestForObject{}).Update(context.Background(), e, q.PriorityQueue)
	}
}

// dependentChanged is what a watch of dependents shows.
func (q *controllerQueue) dependentChanged(name string) {
	q.notes.DependentChanged(reconciler.Owner{Namespace: "shop", Name: name}, reconciler.Change{What: reconciler.EventContent})
	for key, after := range q.notes.Drain() {
		q.AddAfter(ctrl.Request{NamespacedName: key}, after)
	}
}

func (q *controllerQueue) take(t *testing.T) string {
	t.Helper()
	item, shutdown := q.Get()
	if shutdown {
		t.Fatal("the queue is shut down")
	}
	q.notes.StartReconcile(item.NamespacedName)
	q.Done(item)
	return item.Name
}

func TestEditsOfUsersComeFirstAndRegularReconcilesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newControllerQueue(t)
		q.AddWithOpts(priorityqueue.AddOpts{Priority: new(PriorityLow)}, requestFor("regular"))
		q.listed("listed")
		q.created("created")
		q.dependentChanged("drifted")
		q.notes.RequestFull(keyOf("triggered"))
		for key, after := range q.notes.Drain() {
			q.AddAfter(ctrl.Request{NamespacedName: key}, after)
		}
		q.edited("edited")
		var order []string
		for range 6 {
			synctest.Wait()
			order = append(order, q.take(t))
		}
		if diff := cmp.Diff([]string{"edited", "drifted", "triggered", "created", "regular", "listed"}, order); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	})
}

func TestAnEditCountsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newControllerQueue(t)
		q.edited("one")
		synctest.Wait()
		item, priority, _ := q.GetWithPriority()
		if q.Done(item); priority > PriorityDefault {
			t.Errorf("the next reconcile has the priority %d", priority)
		}
		q.listed("one")
		q.dependentChanged("other")
		synctest.Wait()
		if got := q.take(t); got != "other" {
			t.Errorf("%s comes first", got)
		}
	})
}

// TestWhatHasWaitedForAMinuteIsReconciled keeps the queue full of components that come before another one.
func TestWhatHasWaitedForAMinuteIsReconciled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newControllerQueue(t)
		for _, name := range []string{"a", "b", "c"} {
			q.dependentChanged(name)
		}
		q.listed("last")
		synctest.Wait()
		started := time.Now()
		for {
			name, waited := q.take(t), time.Since(started)
			if name == "last" {
				if waited < promoteAfter {
					t.Errorf("it comes after %s", waited)
				}
				return
			}
			if waited > promoteAfter+5*time.Second {
				t.Fatal("others come first")
			}
			q.dependentChanged(name)
			time.Sleep(100 * time.Millisecond) // as long as the reconcile takes
			synctest.Wait()
		}
	})
}

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
	q.notes.queue.Load().lead()
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

func TestAReconcileIsOnTheFastPathIfNothingButDependentsChanged(t *testing.T) {
	key := client.ObjectKey{Namespace: "shop", Name: "main"}
	owner := reconciler.Owner{Namespace: "shop", Name: "main"}
	status, content, output := reconciler.Change{What: reconciler.EventStatus}, reconciler.Change{What: reconciler.EventContent}, reconciler.Change{What: reconciler.EventOutput}
	for name, tc := range map[string]struct {
		before func(*Queue)
		fast   bool
		after  map[client.ObjectKey]time.Duration
	}{
		"nothing happened":         {before: func(*Queue) {}, after: map[client.ObjectKey]time.Duration{}},
		"a status changed":         {before: func(q *Queue) { q.DependentChanged(owner, status) }, fast: true, after: map[client.ObjectKey]time.Duration{key: debounce}},
		"content changed":          {before: func(q *Queue) { q.DependentChanged(owner, content) }, fast: true, after: map[client.ObjectKey]time.Duration{key: 0}},
		"an output changed":        {before: func(q *Queue) { q.DependentChanged(owner, output) }, fast: true, after: map[client.ObjectKey]time.Duration{key: 0}},
		"both changed":             {before: func(q *Queue) { q.DependentChanged(owner, content); q.DependentChanged(owner, status) }, fast: true, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a trigger":                {before: func(q *Queue) { q.RequestFull(key) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a trigger, then a change": {before: func(q *Queue) { q.RequestFull(key); q.DependentChanged(owner, status) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a change, then a trigger": {before: func(q *Queue) { q.DependentChanged(owner, status); q.RequestFull(key) }, after: map[client.ObjectKey]time.Duration{key: 0}},
		"a change during the last one": {
			before: func(q *Queue) { q.StartReconcile(key); q.DependentChanged(owner, status) }, fast: true, after: map[client.ObjectKey]time.Duration{key: debounce},
		},
		"a trigger of a reconcile that failed early, then a change": {
			before: func(q *Queue) {
				q.RequestFull(key)
				q.StartReconcile(key)
				q.Drain()
				q.DependentChanged(owner, content)
			}, after: map[client.ObjectKey]time.Duration{key: 0},
		},
		"a change before the last one": {before: func(q *Queue) { q.DependentChanged(owner, status); q.Drain(); q.StartReconcile(key); q.TakeCauses(key) }, after: map[client.ObjectKey]time.Duration{}},
	} {
		q := New()
		tc.before(q)
		if diff := cmp.Diff(tc.after, q.Drain()); diff != "" {
			t.Errorf("%s: what goes to the queue (-want +got):\n%s", name, diff)
		}
		if q.StartReconcile(key); q.TakeCauses(key) != tc.fast {
			t.Errorf("%s: fast path %v", name, !tc.fast)
		}
		if q.StartReconcile(key); q.TakeCauses(key) {
			t.Errorf("%s: the next reconcile is on the fast path without a cause", name)
		}
	}
}

func TestADelayedReconcileIsOnTheFastPathOnlyWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key := client.ObjectKey{Namespace: "shop", Name: "main"}
		q := New()
		q.RequestFast(key, time.Hour)
		q.RequestFast(key, 200*time.Millisecond) // sooner counts
		q.RequestFast(key, time.Hour)
		if q.StartReconcile(key); q.TakeCauses(key) || len(q.Drain()) > 0 {
			t.Error("a reconcile before it is due is on the fast path")
		}
		<-time.After(200 * time.Millisecond) // of the bubble's clock
		synctest.Wait()
		due := len(q.Drain()) > 0
		if q.StartReconcile(key); !due || !q.TakeCauses(key) || len(q.delayed) > 0 {
			t.Error("the reconcile that is due is not on the fast path, or something is left")
		}
	})
}

func TestWithWatchesOfTheBuilderEveryReconcileIsFull(t *testing.T) {
	q := New()
	q.AlwaysFull = true
	q.RequestFast(client.ObjectKey{Name: "main"}, 0)
	if q.StartReconcile(client.ObjectKey{Name: "main"}); q.TakeCauses(client.ObjectKey{Name: "main"}) {
		t.Error("it is on the fast path")
	}
}

func TestARequeueIsNotLostHoweverManyComponentsWait(t *testing.T) {
	q := New()
	for i := range MaxWaiting {
		if !q.Trigger(client.ObjectKey{Name: fmt.Sprint(i)}) {
			t.Fatalf("the trigger %d is refused", i)
		}
	}
	requeued, changed := client.ObjectKey{Name: "requeued"}, client.ObjectKey{Name: "changed"}
	if q.Trigger(client.ObjectKey{Name: "one more"}) {
		t.Error("triggers are not limited")
	}
	q.RequestFull(requeued)
	q.DependentChanged(reconciler.Owner{Name: "changed"}, reconciler.Change{What: reconciler.EventContent})
	drained := q.Drain()
	for _, key := range []client.ObjectKey{requeued, changed} {
		if _, waits := drained[key]; !waits {
			t.Errorf("%s is lost", key.Name)
		}
	}
}

func TestAChangeWithADelayCausesNoReconcileAtOnce(t *testing.T) {
	q := New()
	key := client.ObjectKey{Name: "main"}
	q.DependentChanged(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventContent, After: time.Hour})
	if _, waits := q.delayed[key]; !waits || len(q.Drain()) > 0 {
		t.Errorf("delayed is %v", q.delayed)
	}
	q.DependentChanged(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventVanished})
	if after, waits := q.Drain()[key]; !waits || after > 0 {
		t.Error("a change meanwhile is delayed, too")
	}
}

func TestAChangeOfStatusKeepsItsDelay(t *testing.T) {
	for after, want := range map[time.Duration]bool{0: false, time.Minute: true} {
		q := New()
		q.DependentChanged(reconciler.Owner{Name: "main"}, reconciler.Change{What: reconciler.EventStatus, After: after})
		if _, delayed := q.delayed[client.ObjectKey{Name: "main"}]; delayed != want {
			t.Errorf("with the delay %s: delayed is %v", after, q.delayed)
		}
	}
}
