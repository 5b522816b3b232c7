// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

// facts are all that the next step depends on: what the cache has, what stands on the
// object, and what this process remembers of it.
type facts struct {
	opinionated bool
	absent      bool // the cache has it no longer
	deleting    bool // deletion was asked for
	claimed     bool // our finalizer is on it; on one that is absent: it was
	pending     bool // the mark of an unhandled creation is on it
	touched     bool // this process called the reconciler for it
	handled     bool // this process handled it successfully
	changed     bool // there is a change since then that counts
	resync      bool // a resync is due
	parted      bool // this process has handled its deletion
	abandoned   bool // the policy gave up, and nothing changed since
}

// step is what to do next, in this order. What comes first must succeed before
// anything of the rest is done.
type step struct {
	claim  claim
	action ReconcileAction
	finish finish
}

// claim is a write before the call.
type claim int

const (
	claimNothing claim = iota
	// claimNew puts our finalizer and the mark on an object.
	claimNew
	// claimAgain puts our finalizer back on an object that was handled.
	claimAgain
)

// finish is a write after the call.
type finish int

const (
	finishNothing finish = iota
	// finishSettle takes the mark off.
	finishSettle
	// finishRelease takes the finalizer and the mark off.
	finishRelease
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
	if f.abandoned && !f.resync {
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
	// The reconciler was never called for what is neither claimed nor touched. A plain reconciler
	// may have been called by an earlier process.
	owed := !f.opinionated || f.claimed || f.pending || f.touched
	if owed && !f.parted {
		s.action = ReconcileActionDeleted
	}
	if f.opinionated && (f.claimed || f.pending) {
		s.finish = finishRelease
	}
	return s
}

// decideExisting decides about objects that exist, with an opinionated reconciler.
func decideExisting(f facts) step {
	switch {
	case f.handled:
		s := step{action: actionFor(f)}
		if !f.claimed {
			s.claim = claimAgain
		}
		if f.pending {
			s.finish = finishSettle
		}
		return s
	case !f.claimed:
		return step{claim: claimNew, action: ReconcileActionCreated, finish: finishSettle}
	case f.pending:
		return step{action: ReconcileActionCreated, finish: finishSettle}
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
