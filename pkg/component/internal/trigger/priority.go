// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The priorities in the queue of the controller, the highest first. The queue takes the higher
// one first, always; so each bound below is needed.
const (
	// priorityOldest is for the one that has waited longest, see Prioritized.
	priorityOldest = 300
	// priorityEdited is for components that a user has created, changed or deleted.
	priorityEdited = 200
	// PriorityBegun is for components that were begun and are not finished. Without it, all components
	// of a fleet are begun before the first one is finished.
	PriorityBegun = 100
	// PriorityDefault is for what has no other priority, such as another object that a spec refers to.
	PriorityDefault = 0
	// PriorityDrift is for components that are finished and of which dependents have changed.
	PriorityDrift = -50
	// PriorityRegular is for regular reconciles, and for those at the start of a process.
	PriorityRegular = handler.LowPriority
)

// Edits come first only as long as there are few: if a fleet is edited, no edit is more urgent than
// another one, and one that a user makes afterwards is.
const (
	editsPerSecond = 5
	editsAtOnce    = 10
)

const (
	// oldestEvery is the share of the reconciles that are for the component that has waited longest: one of as
	// many. So each of n components gets its turn after at most n times as many reconciles, whatever the
	// priorities of the others are.
	oldestEvery = 4
	// oldestAfter is how long a component waits before that share is for it.
	oldestAfter = 5 * time.Second
)

// NoteEdits lets all events pass, and notes those that are edits: what a user did to a component, but not
// what it was when the watch started.
func (q *Queue) NoteEdits() predicate.Predicate {
	note := func(object client.Object) bool {
		if object != nil {
			q.noteEdit(client.ObjectKeyFromObject(object))
		}
		return true
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return e.IsInInitialList || note(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return note(e.ObjectNew) },
		// One that is gone has nothing to be done quickly.
	}
}

func (q *Queue) noteEdit(key client.ObjectKey) {
	q.lock.Lock()
	defer q.lock.Unlock()
	switch {
	case q.queue == nil: // another queue knows no priorities
	case q.edited[key]:
	case q.queue.stands(): // those that the leader handles do not stay edited
		q.edited[key] = true
	case q.edits.TryAccept():
		q.edited[key] = true
	default:
		// The last one of many comes first as soon as one may: it is the one that a user waits for after a fleet
		// was edited.
		if q.late == (client.ObjectKey{}) {
			time.AfterFunc(time.Second/editsPerSecond, q.promoteLate)
		}
		q.late = key
	}
}

// IsUrgent reports whether a component is reconciled now because of an edit that came first.
func (q *Queue) IsUrgent(key client.ObjectKey) bool {
	q.lock.Lock()
	queue := q.queue
	q.lock.Unlock()
	if queue == nil {
		return false
	}
	queue.lock.Lock()
	defer queue.lock.Unlock()
	return queue.busy[ctrl.Request{NamespacedName: key}]
}

// Prefer lets a component that waits come before those that wait for their regular reconcile.
func (q *Queue) Prefer(key client.ObjectKey) {
	q.lock.Lock()
	queue := q.queue
	q.lock.Unlock()
	if queue != nil && queue.isReady(key) {
		queue.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(PriorityDefault)}, ctrl.Request{NamespacedName: key})
	}
}

// promoteLate lets the last edit come first that did not.
func (q *Queue) promoteLate() {
	q.lock.Lock()
	key, queue := q.late, q.queue
	if !q.edits.TryAccept() {
		time.AfterFunc(time.Second/editsPerSecond, q.promoteLate)
		q.lock.Unlock()
		return
	}
	q.late = client.ObjectKey{}
	q.lock.Unlock()
	if queue != nil && queue.isReady(key) {
		queue.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priorityEdited)}, ctrl.Request{NamespacedName: key})
	}
}

// takeEdit reports whether an edit was noted that comes first.
func (q *Queue) takeEdit(key client.ObjectKey) bool {
	q.lock.Lock()
	defer q.lock.Unlock()
	edited := q.edited[key]
	delete(q.edited, key)
	return edited
}

// SetBegun notes whether a component was begun and is not finished.
func (q *Queue) SetBegun(key client.ObjectKey, begun bool) {
	q.lock.Lock()
	defer q.lock.Unlock()
	if begun {
		q.begun[key] = true
	} else {
		delete(q.begun, key)
	}
}

// PriorityAfter returns the priority of the next reconcile of a component that was reconciled.
func (q *Queue) PriorityAfter(key client.ObjectKey, failed bool) int {
	q.lock.Lock()
	defer q.lock.Unlock()
	switch {
	case failed:
		return PriorityDefault
	case q.begun[key]:
		return PriorityBegun
	default:
		return PriorityRegular
	}
}

// priorityOf returns the priority of a component that waits. It is called with the lock.
func (q *Queue) priorityOf(key client.ObjectKey) int {
	switch {
	case q.begun[key]:
		return PriorityBegun
	case q.fast[key]:
		return PriorityDrift
	default:
		return PriorityDefault
	}
}

func newEdits() flowcontrol.PassiveRateLimiter {
	return flowcontrol.NewTokenBucketPassiveRateLimiter(editsPerSecond, editsAtOnce)
}

// Prioritized returns a queue for the controller that knows what the Queue notes. Its priorities starve no
// component: see oldestEvery.
func (q *Queue) Prioritized(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	inner := priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })
	queue := &prioritized{
		PriorityQueue: inner, notes: q, limiter: limiter, now: time.Now,
		held: map[ctrl.Request]int{}, ready: map[ctrl.Request]time.Time{}, busy: map[ctrl.Request]bool{},
	}
	q.lock.Lock()
	defer q.lock.Unlock()
	q.queue = queue
	return queue
}

// Waiting returns the components of a namespace that wait in the queue, as far as that is known.
func (q *Queue) Waiting(namespace string) map[client.ObjectKey]bool {
	q.lock.Lock()
	queue := q.queue
	q.lock.Unlock()
	waiting := map[client.ObjectKey]bool{}
	if queue == nil {
		return waiting
	}
	queue.lock.Lock()
	defer queue.lock.Unlock()
	now := queue.now()
	for item, at := range queue.ready {
		if item.Namespace == namespace && !at.After(now) {
			waiting[item.NamespacedName] = true
		}
	}
	return waiting
}

// prioritized is the queue of the controller.
type prioritized struct {
	priorityqueue.PriorityQueue[ctrl.Request]
	notes   *Queue
	limiter workqueue.TypedRateLimiter[ctrl.Request]
	now     func() time.Time

	lock sync.Mutex
	// held are the requests of a process that does not lead yet, with their priorities: in the queue below no priority can
	// be lowered. It is nil from the first Get on.
	held map[ctrl.Request]int
	// ready is since when each request waits, or from when on it will.
	ready map[ctrl.Request]time.Time
	// taken counts the requests that were handed out, and since is since when the last one of them had waited.
	taken int
	since time.Time
	// busy are the requests that are handled now, and whether each is about an edit. The queue holds them back until they are
	// done, whatever their priority is.
	busy map[ctrl.Request]bool
}

// Add implements workqueue.TypedInterface.
func (p *prioritized) Add(item ctrl.Request) { p.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (p *prioritized) AddAfter(item ctrl.Request, after time.Duration) {
	p.AddWithOpts(priorityqueue.AddOpts{After: after}, item)
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (p *prioritized) AddRateLimited(item ctrl.Request) {
	p.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

// AddWithOpts implements priorityqueue.PriorityQueue.
func (p *prioritized) AddWithOpts(o priorityqueue.AddOpts, items ...ctrl.Request) {
	for _, item := range items {
		options := o
		if options.RateLimited {
			after := p.limiter.When(item)
			if options.After == 0 || after < options.After {
				options.After = after
			}
			options.RateLimited = false
		}
		if p.notes.takeEdit(item.NamespacedName) {
			options.Priority = new(priorityEdited)
		}
		p.note(item, options.After)
		if !p.hold(item, options.Priority) {
			p.PriorityQueue.AddWithOpts(options, item)
		}
	}
}

// note notes from when on a request waits.
func (p *prioritized) note(item ctrl.Request, after time.Duration) {
	p.lock.Lock()
	defer p.lock.Unlock()
	at := p.now().Add(after)
	if _, held := p.held[item]; held {
		p.ready[item] = at // of an edit the last one counts
		return
	}
	if before, known := p.ready[item]; !known || at.Before(before) {
		p.ready[item] = at
	}
}

// isReady reports whether a component waits.
func (p *prioritized) isReady(key client.ObjectKey) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	at, waits := p.ready[ctrl.Request{NamespacedName: key}]
	return waits && !at.After(p.now())
}

// Get implements workqueue.TypedInterface.
func (p *prioritized) Get() (item ctrl.Request, shutdown bool) {
	item, _, shutdown = p.GetWithPriority()
	return item, shutdown
}

// GetWithPriority implements priorityqueue.PriorityQueue.
func (p *prioritized) GetWithPriority() (item ctrl.Request, priority int, shutdown bool) {
	if p.stands() {
		p.lead()
	}
	if oldest, found := p.oldest(); found {
		p.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priorityOldest)}, oldest)
	}
	item, priority, shutdown = p.PriorityQueue.GetWithPriority()
	p.lock.Lock()
	defer p.lock.Unlock()
	if since, known := p.ready[item]; known {
		p.since = since
	}
	delete(p.ready, item)
	p.busy[item] = priority == priorityEdited
	// The controller gives what it adds again the priority that it got. That a request came first once is
	// no reason for the next.
	return item, min(priority, PriorityDefault), shutdown
}

// Done implements priorityqueue.PriorityQueue.
func (p *prioritized) Done(item ctrl.Request) {
	p.lock.Lock()
	delete(p.busy, item)
	p.lock.Unlock()
	p.PriorityQueue.Done(item)
}

// oldest returns the request that has waited longest, if it is time for it. It is not if the last one had waited as long, to the
// millisecond: they were added together, and the queue hands them out in this order, perhaps this one to another worker right now.
func (p *prioritized) oldest() (oldest ctrl.Request, found bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.taken++; p.taken%oldestEvery != 0 {
		return oldest, false
	}
	since := p.now().Add(-oldestAfter)
	for item, at := range p.ready {
		if _, busy := p.busy[item]; at.Before(since) && !busy {
			oldest, since, found = item, at, true
		}
	}
	return oldest, found && p.since.Sub(since) > time.Millisecond
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &prioritized{}
