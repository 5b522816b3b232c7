// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// The priorities in the queue of the controller. The queue takes the highest first, and of one priority the request that was added first.
const (
	// priorityEdited is for components that a user has changed or deleted.
	priorityEdited = 100
	// PriorityDefault is for components that are not finished, for changes of dependents and of what a spec refers to, and for what has
	// waited in the queue for promoteAfter.
	PriorityDefault = 0
	// priorityCreated is for what comes without a priority, such as a new component: those that were begun before are finished first.
	priorityCreated = -50
	// PriorityLow is for regular reconciles, and for those at the start of a process.
	PriorityLow = handler.LowPriority
)

// promoteAfter is how long a request waits until it gets the default priority, and promoteEvery is how often that is looked for.
const promoteAfter, promoteEvery = time.Minute, time.Second

// NoteEdits lets all events pass, and notes those that are changes of a component by a user.
func (q *Queue) NoteEdits() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		if queue := q.queue.Load(); queue != nil { // another queue knows no priorities
			queue.noteEdit(client.ObjectKeyFromObject(e.ObjectNew))
		}
		return true
	}}
}

// IsUrgent reports whether a component is reconciled now because of an edit that came first.
func (q *Queue) IsUrgent(key client.ObjectKey) bool {
	queue := q.queue.Load()
	if queue == nil {
		return false
	}
	queue.lock.Lock()
	defer queue.lock.Unlock()
	return queue.busy[ctrl.Request{NamespacedName: key}]
}

// Prioritized returns a queue for the controller that knows what the Queue notes.
func (q *Queue) Prioritized(name string, limiter workqueue.TypedRateLimiter[ctrl.Request]) workqueue.TypedRateLimitingInterface[ctrl.Request] {
	inner := priorityqueue.New(name, func(o *priorityqueue.Opts[ctrl.Request]) { o.RateLimiter = limiter })
	queue := &prioritized{
		PriorityQueue: inner, limiter: limiter, now: time.Now,
		edited: map[ctrl.Request]bool{}, held: map[ctrl.Request]int{}, waiting: waiting{since: map[ctrl.Request]time.Time{}}, busy: map[ctrl.Request]bool{},
	}
	q.queue.Store(queue)
	return queue
}

// prioritized is the queue of the controller.
type prioritized struct {
	priorityqueue.PriorityQueue[ctrl.Request]
	limiter workqueue.TypedRateLimiter[ctrl.Request]
	now     func() time.Time

	lock sync.Mutex
	// edited are the requests about an edit that is about to be added.
	edited map[ctrl.Request]bool
	// held are the requests of a process that does not lead yet, with their priorities: in the queue below no priority can
	// be lowered. It is nil from the first Get on.
	held    map[ctrl.Request]int
	waiting waiting
	// busy are the requests that are handled now, and whether each is about an edit. The queue holds them back until they are
	// done, whatever their priority is.
	busy map[ctrl.Request]bool
}

func (p *prioritized) Add(item ctrl.Request) { p.AddWithOpts(priorityqueue.AddOpts{}, item) }

// AddAfter adds what the Queue requests. The controller adds a requeue with a priority.
func (p *prioritized) AddAfter(item ctrl.Request, after time.Duration) {
	p.AddWithOpts(priorityqueue.AddOpts{After: after, Priority: new(PriorityDefault)}, item)
}

func (p *prioritized) AddRateLimited(item ctrl.Request) {
	p.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

func (p *prioritized) AddWithOpts(o priorityqueue.AddOpts, items ...ctrl.Request) {
	for _, item := range items {
		options := o
		if options.RateLimited {
			options.After, options.RateLimited = p.limiter.When(item), false
		}
		if options.Priority == nil {
			options.Priority = new(priorityCreated)
		}
		if !p.hold(item, &options) {
			p.PriorityQueue.AddWithOpts(options, item)
		}
	}
}

func (p *prioritized) Get() (item ctrl.Request, shutdown bool) {
	item, _, shutdown = p.GetWithPriority()
	return item, shutdown
}

func (p *prioritized) GetWithPriority() (item ctrl.Request, priority int, shutdown bool) {
	p.lead()
	p.promote()
	item, priority, shutdown = p.PriorityQueue.GetWithPriority()
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.waiting.since, item)
	p.busy[item] = priority == priorityEdited
	return item, min(priority, PriorityDefault), shutdown // with which the controller adds what failed
}

func (p *prioritized) Done(item ctrl.Request) {
	p.lock.Lock()
	delete(p.busy, item)
	p.lock.Unlock()
	p.PriorityQueue.Done(item)
}

// promote gives the default priority to the requests that have waited for promoteAfter.
func (p *prioritized) promote() {
	p.lock.Lock()
	overdue := p.waiting.overdue(p.now())
	p.lock.Unlock()
	if len(overdue) > 0 {
		p.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(PriorityDefault)}, overdue...)
	}
}

var _ priorityqueue.PriorityQueue[reconcile.Request] = &prioritized{}

// waiting knows how long the requests in the queue have waited.
type waiting struct {
	// since is the time at which the wait of a request began, or begins: a request that is added with a delay waits from its end on.
	since map[ctrl.Request]time.Time
	// checked is the time of the last call of overdue that looked at the requests.
	checked time.Time
}

// add notes that a request waits from a time on, if it does not wait already.
func (w *waiting) add(item ctrl.Request, at time.Time) {
	if before, known := w.since[item]; !known || at.Before(before) {
		w.since[item] = at
	}
}

// overdue returns the requests that have waited for promoteAfter, the longest wait first. It looks once in promoteEvery.
func (w *waiting) overdue(now time.Time) (items []ctrl.Request) {
	if now.Sub(w.checked) < promoteEvery {
		return nil
	}
	w.checked = now
	for item, at := range w.since {
		if now.Sub(at) >= promoteAfter {
			items = append(items, item)
		}
	}
	slices.SortFunc(items, func(a, b ctrl.Request) int { return w.since[a].Compare(w.since[b]) })
	return items
}

// A process that stands by watches the components, and holds what is to be reconciled until it leads.

// editsAlone is how long a process that begins to lead does nothing but the edits that no leader has handled, if there are
// any: to look at all other components takes the server and the processor for longer.
const editsAlone = 300 * time.Millisecond

// NoteLeader lets all events pass but those about components that are gone before this process leads, and follows
// what the leader does until then: a component that has changed in nothing but its status has been handled. So the
// edits that no leader has handled come first when this process begins to lead.
func (q *Queue) NoteLeader() predicate.Predicate {
	return predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool {
			if queue := q.queue.Load(); queue != nil && onlyStatusChanged(e) {
				queue.setHandled(client.ObjectKeyFromObject(e.ObjectNew))
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			queue := q.queue.Load()
			return queue == nil || !queue.dropHeld(client.ObjectKeyFromObject(e.Object))
		},
	}
}

// onlyStatusChanged reports whether no user has changed anything, as far as metadata show it.
func onlyStatusChanged(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetGeneration() == after.GetGeneration() &&
		maps.Equal(before.GetAnnotations(), after.GetAnnotations()) && maps.Equal(before.GetLabels(), after.GetLabels()) &&
		slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// noteEdit notes that the next request for a component is about an edit.
func (p *prioritized) noteEdit(key client.ObjectKey) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.edited[ctrl.Request{NamespacedName: key}] = true
}

// hold notes from when on a request waits, with the priority of an edit if it is about one. It keeps the request until this process leads.
func (p *prioritized) hold(item ctrl.Request, options *priorityqueue.AddOpts) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.edited[item] {
		delete(p.edited, item)
		options.Priority = new(priorityEdited)
	}
	p.waiting.add(item, p.now().Add(options.After))
	if p.held == nil {
		return false
	}
	if before, known := p.held[item]; !known || *options.Priority > before {
		p.held[item] = *options.Priority
	}
	return true
}

// setHandled notes that the leader has handled a component.
func (p *prioritized) setHandled(key client.ObjectKey) {
	p.lock.Lock()
	defer p.lock.Unlock()
	item := ctrl.Request{NamespacedName: key}
	if _, known := p.held[item]; known {
		p.held[item] = PriorityDefault
	}
}

// dropHeld removes a component that is gone, and reports false if this process leads.
func (p *prioritized) dropHeld(key client.ObjectKey) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.held == nil {
		return false
	}
	delete(p.held, ctrl.Request{NamespacedName: key})
	delete(p.waiting.since, ctrl.Request{NamespacedName: key})
	return true
}

// lead hands over what was held, once. Only a controller that leads takes requests.
func (p *prioritized) lead() {
	p.lock.Lock()
	defer p.lock.Unlock()
	if p.held == nil {
		return
	}
	now, rest := p.now(), time.Duration(0)
	if slices.Contains(slices.Collect(maps.Values(p.held)), priorityEdited) {
		rest = editsAlone
	}
	for item, priority := range p.held {
		turn := now
		if priority != priorityEdited {
			turn = now.Add(rest)
		}
		if p.waiting.since[item].Before(turn) { // the time in held does not count
			p.waiting.since[item] = turn
		}
		p.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority), After: p.waiting.since[item].Sub(now)}, item)
	}
	p.held = nil
}
