// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"context"
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
	queue.notes.queue.lead()
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
		addTo(q.PriorityQueue, key, after)
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
			addTo(q.PriorityQueue, key, after)
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
