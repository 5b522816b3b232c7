// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package trigger

import (
	"maps"
	"slices"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

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
			if queue := q.standby(); queue != nil && onlyStatusChanged(e) {
				queue.setHandled(client.ObjectKeyFromObject(e.ObjectNew))
			}
			return true
		},
		DeleteFunc: func(e event.DeleteEvent) bool {
			queue := q.standby()
			if queue == nil || e.Object == nil {
				return true
			}
			queue.drop(client.ObjectKeyFromObject(e.Object))
			return false
		},
	}
}

// onlyStatusChanged reports whether no user has changed anything, as far as metadata show it.
func onlyStatusChanged(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before != nil && after != nil && before.GetGeneration() == after.GetGeneration() &&
		maps.Equal(before.GetAnnotations(), after.GetAnnotations()) && maps.Equal(before.GetLabels(), after.GetLabels()) &&
		slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// standby returns the queue of a process that does not lead yet, or nil.
func (q *Queue) standby() *prioritized {
	q.lock.Lock()
	defer q.lock.Unlock()
	if q.queue == nil || !q.queue.stands() {
		return nil
	}
	return q.queue
}

// stands reports whether this process does not lead yet.
func (p *prioritized) stands() bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.held != nil
}

// hold notes from when on a request waits, and keeps it until this process leads.
func (p *prioritized) hold(item ctrl.Request, priority int, after time.Duration) bool {
	p.lock.Lock()
	defer p.lock.Unlock()
	at := p.now().Add(after)
	if before, known := p.ready[item]; !known || at.Before(before) {
		p.ready[item] = at
	}
	if p.held == nil {
		return false
	}
	if before, known := p.held[item]; !known || priority > before {
		p.held[item] = priority
	}
	return true
}

// setHandled notes that the leader has handled a component.
func (p *prioritized) setHandled(key client.ObjectKey) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if _, known := p.held[ctrl.Request{NamespacedName: key}]; known {
		p.held[ctrl.Request{NamespacedName: key}] = PriorityDefault
	}
}

// drop removes a component that is gone.
func (p *prioritized) drop(key client.ObjectKey) {
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.held, ctrl.Request{NamespacedName: key})
	delete(p.ready, ctrl.Request{NamespacedName: key})
}

// lead hands over what was held. Only a controller that leads takes requests.
func (p *prioritized) lead() {
	p.lock.Lock()
	defer p.lock.Unlock()
	now, rest := p.now(), time.Duration(0)
	if slices.Contains(slices.Collect(maps.Values(p.held)), priorityEdited) {
		rest = editsAlone
	}
	for item, priority := range p.held {
		turn := now
		if priority != priorityEdited {
			turn = now.Add(rest)
		}
		if p.ready[item].Before(turn) { // it does not count how long it was held
			p.ready[item] = turn
		}
		p.PriorityQueue.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority), After: p.ready[item].Sub(now)}, item)
	}
	p.held = nil
}
