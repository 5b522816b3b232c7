// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// calling notes that the reconciler is about to be called: from now on something may
// have been made for the object.
func (m *memory) calling(s subject, action ReconcileAction) {
	m.update(s, func(r *record) {
		if r.touched = s.object.GetUID(); action != ReconcileActionDeleted && r.parted == r.touched {
			r.parted = ""
		}
	})
}

// settled notes that the mark was taken off, and the state of the object after that.
func (m *memory) settled(s subject, after written) {
	m.update(s, func(r *record) { r.settled = after })
}

// freed notes that both finalizers were taken off.
func (m *memory) freed(s subject, after written) { m.update(s, func(r *record) { r.freed = after }) }

// finished notes a call that succeeded. Obj is the state that was handled.
func (m *memory) finished(s subject, action ReconcileAction, obj client.Object, due time.Time) {
	m.update(s, func(r *record) {
		r.attempt, r.resync = attempt{}, false
		if action == ReconcileActionDeleted {
			// There is nothing to resync, however long others hold the object.
			r.parted, r.handled, r.due = obj.GetUID(), nil, time.Time{}
			return
		}
		r.handled, r.due = obj, due
	})
}

// unfinished notes a call that has to be made again, after so many failures.
func (m *memory) unfinished(s subject, count int, state map[string]any) {
	m.update(s, func(r *record) {
		r.attempt = attempt{object: s.object, absent: s.absent, count: count, state: state}
	})
}

// abandoned notes a call that is not made again until something changes or a resync is
// due. Obj is the state that was given up.
func (m *memory) abandoned(s subject, obj client.Object, due time.Time) {
	m.update(s, func(r *record) {
		r.attempt = attempt{object: obj, absent: s.absent, abandoned: true}
		r.resync, r.due = false, due
	})
}

// forget drops an object that is gone.
func (m *memory) forget(s subject) {
	m.update(s, func(r *record) {
		r.gone, r.bearer, r.attempt, r.due = nil, nil, attempt{}, time.Time{}
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
