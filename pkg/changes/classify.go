// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

// facts are the input of the decision about the next step: the state in the cache, the finalizers
// on the object, and the memory of this process.
type facts struct {
	opinionated     bool
	absent          bool // the cache has it no longer
	deleting        bool // deletion was asked for
	hasFinalizer    bool // our finalizer is on it; on an absent object: it was
	pending         bool // our pending finalizer is on it
	called          bool // this process called the reconciler for it
	handled         bool // this process handled it successfully
	changed         bool // there is a change since then that counts
	resync          bool // a resync is due
	deletionHandled bool // this process has handled its deletion
	gaveUp          bool // the policy gave up, and nothing changed since
}

// step is the next step, in this order. An action must succeed before the next one is done.
type step struct {
	add    addition
	action ReconcileAction
	remove removal
}

// addition is a write before the call.
type addition int

const (
	addNothing addition = iota
	// addBoth puts our finalizer and the pending finalizer on an object.
	addBoth
	// addFinalizer puts our finalizer back on an object that was handled.
	addFinalizer
)

// removal is a write after the call.
type removal int

const (
	removeNothing removal = iota
	// removePending removes the pending finalizer.
	removePending
	// removeBoth removes the finalizer and the pending finalizer.
	removeBoth
)

// classify decides on the next step.
func classify(f facts) step {
	var s step
	switch {
	case f.absent || f.opinionated && f.deleting:
		s = decideDeleted(f)
	case f.opinionated:
		s = decideExisting(f)
	default:
		s = step{action: actionFor(f)}
	}
	if f.gaveUp && !f.resync {
		switch s.action {
		case ReconcileActionCreated, ReconcileActionDeleted:
			return step{}
		default:
			s.action = ReconcileActionUnknown
		}
	}
	return s
}

// decideDeleted decides about objects that go or are gone. A finalizer is never added to them,
// because the server would refuse it.
func decideDeleted(f facts) step {
	var s step
	// The reconciler was never called for an object without our finalizers, unless this process
	// called it. A plain reconciler may have been called by an earlier process.
	owed := !f.opinionated || f.hasFinalizer || f.pending || f.called
	if owed && !f.deletionHandled {
		s.action = ReconcileActionDeleted
	}
	if f.opinionated && (f.hasFinalizer || f.pending) {
		s.remove = removeBoth
	}
	return s
}

// decideExisting decides about objects that exist, with an opinionated reconciler.
func decideExisting(f facts) step {
	switch {
	case f.handled:
		s := step{action: actionFor(f)}
		if !f.hasFinalizer {
			s.add = addFinalizer
		}
		if f.pending {
			s.remove = removePending
		}
		return s
	case !f.hasFinalizer:
		return step{add: addBoth, action: ReconcileActionCreated, remove: removePending}
	case f.pending:
		return step{action: ReconcileActionCreated, remove: removePending}
	default:
		return step{action: ReconcileActionResynced}
	}
}

// actionFor is the action that this process has to report for an object that exists.
func actionFor(f facts) ReconcileAction {
	switch {
	case !f.handled:
		return ReconcileActionCreated
	case f.changed:
		return ReconcileActionUpdated
	case f.resync:
		return ReconcileActionResynced
	default:
		return ReconcileActionUnknown
	}
}
