// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package trigger adds components to the queue of a controller for other reasons than a change
// of the component itself.
//
// It decides between a full reconcile and the fast path: a reconcile uses the fast path if
// nothing but dependents of the component caused it.
package trigger

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// MaxWaiting is the number of components that wait for the controller, from which on Trigger
// refuses more. The controller reads them at once; they pile up only while it does not run.
const MaxWaiting = 1024

// debounce is how long further changes of the status of dependents are waited for.
const debounce = 100 * time.Millisecond

// Queue holds the components on their way to the queue of the controller, and the causes of
// their next reconciles. It is safe for concurrent use.
type Queue struct {
	// AlwaysFull makes every reconcile a full one.
	AlwaysFull bool

	signal chan struct{} // holds one

	lock sync.Mutex
	// waiting are to be added to the queue of the controller, after a delay.
	waiting map[client.ObjectKey]time.Duration
	// reconciles have the causes of reconciles, by component. A component without causes has no entry.
	reconciles map[client.ObjectKey]reconciles
	// delayed are reconciles for dependents that are due later.
	delayed map[client.ObjectKey]delayed
	// queue is the queue of the controller, if it has priorities.
	queue atomic.Pointer[prioritized]
}

// causes are the causes of a reconcile: a dependent, and something else.
type causes struct{ dependents, others bool }

func (c causes) with(more causes) causes {
	return causes{c.dependents || more.dependents, c.others || more.others}
}

// reconciles are the next reconcile of a component, and the reconcile that runs. The latter has the causes of reconciles before, too, that
// failed before they took them.
type reconciles struct{ next, running causes }

// delayed is a reconcile for dependents that is due later.
type delayed struct {
	timer *time.Timer
	at    time.Time
}

// New returns an empty Queue.
func New() *Queue {
	return &Queue{
		signal: make(chan struct{}, 1), waiting: map[client.ObjectKey]time.Duration{}, reconciles: map[client.ObjectKey]reconciles{},
		delayed: map[client.ObjectKey]delayed{},
	}
}

// Trigger asks for a full reconcile. It reports false if too many components wait.
func (q *Queue) Trigger(key client.ObjectKey) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	if _, known := q.waiting[key]; !known && len(q.waiting) >= MaxWaiting {
		return false
	}
	q.note(key, causes{others: true})
	q.add(key, 0)
	return true
}

// RequestFull asks for a full reconcile. Unlike Trigger it never refuses: its callers name each
// component at most once at a time, so the queue stays as small as their number.
func (q *Queue) RequestFull(key client.ObjectKey) {
	q.lock.Lock()
	defer q.lock.Unlock()
	q.note(key, causes{others: true})
	q.add(key, 0)
}

// RequestFast asks for a reconcile on the fast path after a delay. If the component is
// reconciled for another cause before that, it is not on the fast path.
func (q *Queue) RequestFast(key client.ObjectKey, after time.Duration) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if after <= debounce {
		q.addFast(key, after)
		return
	}
	at := time.Now().Add(after)
	if before, known := q.delayed[key]; known {
		if !at.Before(before.at) {
			return
		}
		before.timer.Stop()
	}
	q.delayed[key] = delayed{at: at, timer: time.AfterFunc(after, func() {
		q.lock.Lock()
		defer q.lock.Unlock()
		if q.delayed[key].at != at {
			return // a sooner one has replaced it, while this call waited for the lock
		}
		delete(q.delayed, key)
		q.addFast(key, 0)
	})}
}

// DependentChanged asks for a reconcile of the owner of a dependent that changed. A change of
// its status is waited for a moment, because others follow; a repair does not wait.
func (q *Queue) DependentChanged(owner reconciler.Owner, change reconciler.Change) {
	after := change.After
	if change.What == reconciler.EventStatus {
		after = max(after, debounce)
	}
	q.RequestFast(client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, after)
}

func (q *Queue) addFast(key client.ObjectKey, after time.Duration) {
	q.note(key, causes{dependents: true})
	q.add(key, after)
}

func (q *Queue) add(key client.ObjectKey, after time.Duration) {
	if before, known := q.waiting[key]; !known || after < before {
		q.waiting[key] = after
	}
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

func (q *Queue) note(key client.ObjectKey, more causes) {
	known := q.reconciles[key]
	known.next = known.next.with(more)
	q.reconciles[key] = known
}

// StartReconcile is called before a reconcile reads anything. The causes that come afterwards are those of the next reconcile.
func (q *Queue) StartReconcile(key client.ObjectKey) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if known, ok := q.reconciles[key]; ok {
		q.reconciles[key] = reconciles{running: known.running.with(known.next)}
	}
}

// TakeCauses is called by a reconcile before it works on the dependents. It drops the causes of the reconcile, and reports whether nothing
// but dependents caused it, so that it uses the fast path.
func (q *Queue) TakeCauses(key client.ObjectKey) (fast bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	known := q.reconciles[key]
	if known.next == (causes{}) {
		delete(q.reconciles, key)
	} else {
		q.reconciles[key] = reconciles{next: known.next}
	}
	return known.running == causes{dependents: true} && !q.AlwaysFull
}

// Forget drops the causes of reconciles of a component.
func (q *Queue) Forget(key client.ObjectKey) {
	q.lock.Lock()
	defer q.lock.Unlock()
	delete(q.reconciles, key)
}

// Source adds the components to the queue of the controller as long as it runs.
func (q *Queue) Source() source.Source {
	return source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
		go func() {
			for {
				select {
				case <-ctx.Done():
					return
				case <-q.signal:
					for key, after := range q.Drain() {
						queue.AddAfter(ctrl.Request{NamespacedName: key}, after)
					}
				}
			}
		}()
		return nil
	})
}

// Drain removes the components that wait, and returns them with their delays.
func (q *Queue) Drain() map[client.ObjectKey]time.Duration {
	q.lock.Lock()
	defer q.lock.Unlock()
	drained := q.waiting
	q.waiting = map[client.ObjectKey]time.Duration{}
	return drained
}
