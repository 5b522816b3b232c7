// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"sync"
	"time"

	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// memory is a process's knowledge of the objects of a controller. Objects in it are shared with the
// cache and never changed.
type memory struct {
	mu         sync.Mutex
	records    map[client.ObjectKey]*record
	changed    func(oldObj, newObj client.Object) bool
	finalizers ownFinalizers
}

// record holds the objects of one name. There may be two: a deleted object and its successor.
type record struct {
	current            client.Object // as the cache has it; nil if it is gone
	gone               client.Object // as it was last, while its deletion is to be delivered
	lastWithFinalizers client.Object // gone as it was before, if it bore our finalizers then
	handled            client.Object // the last state that was handled successfully
	called             apitypes.UID  // the object that the reconciler was last called for
	deletionHandled    apitypes.UID  // the object of the last delivered deletion
	pendingRemoved     written       // the last time that the pending finalizer was removed
	finalizersRemoved  written       // the last time that both finalizers were removed
	resync             bool          // asked for by the cache
	due                time.Time     // when the next resync is due; zero for never
	attempt            attempt
}

// written is a write of ours, which the cache may not have observed yet.
type written struct {
	uid     apitypes.UID
	version string // the resourceVersion after it; empty if the object was gone by then
}

// outdates reports whether the object is as it was before the write. An object with the same
// version is, if it has the removed finalizer: a write that removes the last finalizer
// does not always change the version.
func (w written) outdates(obj client.Object) bool {
	if w.uid != obj.GetUID() {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), w.version)
	return w.version == "" || err == nil && order <= 0
}

// attempt is an unfinished call.
type attempt struct {
	object client.Object // nil if there is none
	absent bool
	count  int // failures in a row
	state  map[string]any
	gaveUp bool
}

// subject is the subject of a reconcile: a record as it was at the start.
type subject struct {
	facts
	object client.Object
	old    client.Object
	count  int
	state  map[string]any
	due    time.Time
	// followed: it is gone, and there is another object of its name.
	followed bool
}

func newMemory(changed func(oldObj, newObj client.Object) bool, finalizers ownFinalizers) *memory {
	return &memory{records: map[client.ObjectKey]*record{}, changed: guardedChanged(changed), finalizers: finalizers}
}

// recordOf returns the record of the name of the object; the caller holds the lock.
func (m *memory) recordOf(obj client.Object) *record {
	key := client.ObjectKeyFromObject(obj)
	if m.records[key] == nil {
		m.records[key] = &record{}
	}
	return m.records[key]
}

// appeared notes an object of the cache.
func (m *memory) appeared(obj client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recordOf(obj)
	if r.current != nil && r.current.GetUID() != obj.GetUID() {
		r.noteGone(r.current, m.finalizers)
	}
	r.current = obj
}

// replaced notes a change, and reports whether it is worth a reconcile.
func (m *memory) replaced(oldObj, newObj client.Object) bool {
	m.appeared(newObj)
	if oldObj.GetUID() != newObj.GetUID() || oldObj.GetDeletionTimestamp().IsZero() != newObj.GetDeletionTimestamp().IsZero() {
		return true
	}
	if oldObj.GetResourceVersion() == newObj.GetResourceVersion() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if r := m.records[client.ObjectKeyFromObject(newObj)]; r != nil {
			r.resync = true
		}
		return true
	}
	return m.changed(oldObj, newObj) || m.finalizers.isOn(oldObj) && !m.finalizers.isOn(newObj)
}

// disappeared notes that the cache has the object no longer.
func (m *memory) disappeared(obj client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.recordOf(obj)
	if r.current != nil && r.current.GetUID() != obj.GetUID() {
		r.noteGone(r.current, m.finalizers)
		r.current = nil
	}
	r.noteGone(obj, m.finalizers)
	r.current = nil
}

// noteGone notes an object that is gone. If the deletion of an earlier object is still to be
// delivered, no call was made for this one, and so its own deletion needs no call.
func (r *record) noteGone(obj client.Object, finalizers ownFinalizers) {
	if r.gone != nil {
		return
	}
	r.gone = obj
	last := obj
	if r.current != nil && r.current.GetUID() == obj.GetUID() {
		// The object in an event of a deletion is the same state under a later version.
		last = r.current
	}
	if finalizers.isAnyOn(last) {
		r.lastWithFinalizers = last
	}
}

// next returns the next subject of the name; false if there is none.
func (m *memory) next(key client.ObjectKey, now time.Time) (subject, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.records[key]
	if r == nil || r.gone == nil && r.current == nil {
		delete(m.records, key)
		return subject{}, false
	}
	s := subject{object: r.gone, due: r.due}
	if r.gone == nil {
		s.object = r.current
	}
	uid := s.object.GetUID()
	s.opinionated = m.finalizers.finalizer != ""
	s.called, s.deletionHandled = r.called == uid, r.deletionHandled == uid
	switch {
	case r.gone != nil:
		s.followed = r.current != nil
		s.absent, s.hasFinalizer = true, r.lastWithFinalizers != nil && !r.finalizersRemoved.outdates(r.lastWithFinalizers)
	default:
		s.deleting = !s.object.GetDeletionTimestamp().IsZero()
		s.hasFinalizer = m.finalizers.isOn(s.object) && !r.finalizersRemoved.outdates(s.object)
		s.pending = m.finalizers.isPendingOn(s.object) && !r.finalizersRemoved.outdates(s.object) && !r.pendingRemoved.outdates(s.object)
	}
	if (s.hasFinalizer || s.pending) && r.finalizersRemoved.uid == uid {
		s.deletionHandled = false // another process put the finalizer back after we had removed it
	}
	s.resync = r.resync || !r.due.IsZero() && !now.Before(r.due)
	if r.handled != nil && r.handled.GetUID() == uid {
		s.handled, s.old, s.changed = true, r.handled, m.changed(r.handled, s.object)
	}
	if r.attempt.continues(s) {
		s.count, s.state = r.attempt.count, r.attempt.state
		// A successor is a change, too: its creation is not reported before the deletion of the other.
		s.gaveUp = r.attempt.gaveUp && !s.followed && !m.changed(r.attempt.object, s.object)
	}
	return s, true
}

// continues reports whether a call for the subject would be another attempt.
func (a attempt) continues(s subject) bool {
	return a.object != nil && a.object.GetUID() == s.object.GetUID() && a.absent == s.absent &&
		a.object.GetDeletionTimestamp().IsZero() == s.object.GetDeletionTimestamp().IsZero() &&
		!ContentChanged(a.object, s.object)
}

// noteCall notes that the reconciler is about to be called: from now on something may
// have been made for the object.
func (m *memory) noteCall(s subject, action ReconcileAction) {
	m.update(s, func(r *record) {
		if r.called = s.object.GetUID(); action != ReconcileActionDeleted && r.deletionHandled == r.called {
			r.deletionHandled = ""
		}
	})
}

// notePendingRemoved records that the pending finalizer was removed, and the state of the object after that.
func (m *memory) notePendingRemoved(s subject, after written) {
	m.update(s, func(r *record) { r.pendingRemoved = after })
}

// noteFinalizersRemoved records that both finalizers were removed.
func (m *memory) noteFinalizersRemoved(s subject, after written) {
	m.update(s, func(r *record) { r.finalizersRemoved = after })
}

// noteSuccess notes a call that succeeded. Obj is the state that was handled.
func (m *memory) noteSuccess(s subject, action ReconcileAction, obj client.Object, due time.Time) {
	m.update(s, func(r *record) {
		r.attempt, r.resync = attempt{}, false
		if action == ReconcileActionDeleted {
			// There is nothing to resync, however long other finalizers hold the object.
			r.deletionHandled, r.handled, r.due = obj.GetUID(), nil, time.Time{}
			return
		}
		r.handled, r.due = obj, due
	})
}

// noteRetry notes a call that has to be made again, after so many failures.
func (m *memory) noteRetry(s subject, count int, state map[string]any) {
	m.update(s, func(r *record) {
		r.attempt = attempt{object: s.object, absent: s.absent, count: count, state: state}
	})
}

// noteGaveUp notes a call that is not made again until something changes or a resync is
// due. Obj is the state that was given up.
func (m *memory) noteGaveUp(s subject, obj client.Object, due time.Time) {
	m.update(s, func(r *record) {
		r.attempt = attempt{object: obj, absent: s.absent, gaveUp: true}
		r.resync, r.due = false, due
	})
}

// forgetDeleted drops an object that is gone.
func (m *memory) forgetDeleted(s subject) {
	m.update(s, func(r *record) {
		r.gone, r.lastWithFinalizers, r.attempt, r.due = nil, nil, attempt{}, time.Time{}
		if r.current == nil {
			delete(m.records, client.ObjectKeyFromObject(s.object))
		}
	})
}

func (m *memory) update(s subject, change func(*record)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.records[client.ObjectKeyFromObject(s.object)]; r != nil {
		change(r)
	}
}

// due returns when the next resync of the object is due; zero for never.
func (m *memory) due(key client.ObjectKey) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.records[key]; r != nil {
		return r.due
	}
	return time.Time{}
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// listener passes the events of the cache to the memory, and queues objects that need a reconcile.
type listener struct {
	memory *memory
	next   handler.EnqueueRequestForObject
}

var _ handler.EventHandler = (*listener)(nil)

func (l *listener) Create(ctx context.Context, e event.CreateEvent, q queue) {
	l.memory.appeared(e.Object)
	l.next.Create(ctx, e, q)
}

func (l *listener) Update(ctx context.Context, e event.UpdateEvent, q queue) {
	if l.memory.replaced(e.ObjectOld, e.ObjectNew) {
		l.next.Update(ctx, e, q)
	}
}

func (l *listener) Delete(ctx context.Context, e event.DeleteEvent, q queue) {
	l.memory.disappeared(e.Object)
	l.next.Delete(ctx, e, q)
}

// Generic implements handler.EventHandler. A cache has no such events.
func (l *listener) Generic(context.Context, event.GenericEvent, queue) {}
