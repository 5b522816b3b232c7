// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Objects that are done with:
//
//	                          recorded as                 created again if it is absent
//	policy once               a digest                    never
//	policy once-per-manifest  a digest                    if its manifest changes, or it ended without success
//	a purge order             Completing, then Completed  if its manifest changes
//	a TTL after its end       Finished, then Completed    if its manifest changes, or it had failed
//	a hook of the deletion    Completed                   never

// isFinished reports whether the object is gone for good: it did its work and was purged or removed
// by its TTL, or it is applied only once. It is not created again, and an object that another
// client creates in its place is not changed.
func (u *unit) isFinished() bool {
	return (u.isPurgeRecorded() || u.hasExpired() || u.isAppliedOnce()) && u.live.known() && !u.isOurs() && !u.isInherited()
}

func (u *unit) markFinished() {
	u.settled = true
	if u.isPurgeRecorded() || u.runsOnDelete() {
		u.item.Phase = vocabulary.PhaseCompleted
	}
	// There is no object to take over. An object that was never seen keeps the mark.
	u.item.Inherited = u.item.Inherited && u.item.Phase != vocabulary.PhaseCompleted
}

// finish returns how the work of an object with a TTL ended. A recorded end counts first, because
// an end is not undone.
func (u *unit) finish() Finish {
	switch u.item.Finished {
	case vocabulary.FinishComplete:
		return FinishComplete
	case vocabulary.FinishFailed:
		return FinishFailed
	}
	return u.live.Finish
}

// mayHaveExpired reports whether the object, which was made of the manifest, is absent or
// terminating, and may have been removed by its TTL.
func (u *unit) mayHaveExpired() bool {
	made := u.item.UID != "" && u.item.Phase == vocabulary.PhaseApplied && (u.isSame() || u.runsOnDelete()) && !u.becameHook
	going := u.live.Existence == Present && !u.live.DeletionTimestamp.IsZero() && u.item.UID == u.live.UID && u.isOurs()
	return made && (u.live.Existence == Absent || going)
}

// isComplete reports whether the object is complete and absent or terminating, and whether
// that is only assumed, because its deletion was not watched.
func (u *unit) isComplete() (complete, assumed bool) {
	switch u.finish() {
	case FinishComplete:
		return u.mayHaveExpired(), false
	case FinishUnknown:
		return u.live.Existence == Absent && u.desired.HasTTL && u.mayHaveExpired() && !u.isAppliedOnce(), true
	}
	return false, false
}

// hasExpired reports whether it is recorded that the object completed and was removed by its
// TTL.
func (u *unit) hasExpired() bool {
	return u.item.Phase == vocabulary.PhaseCompleted && u.desired.Policies.Order.Purge == nil && (u.isSame() || u.runsOnDelete())
}

// settleExpired sets an object settled that completed and is removed by its TTL, and reports
// whether it is one.
func (w *work) settleExpired(u *unit) bool {
	complete, assumed := u.isComplete()
	if !complete {
		return false
	}
	w.settleReady(u)
	u.item.Finished = vocabulary.FinishComplete
	if u.live.Existence == Absent {
		u.item.Phase = vocabulary.PhaseCompleted
	}
	if assumed {
		w.note(u.key, report.NoteAssumedComplete, "counts as complete: it has a time to live after its end, and went while nothing watched it")
	}
	return true
}

// isPurgeRecorded reports whether the object did its work and its purge is recorded, and its manifest
// is unchanged.
func (u *unit) isPurgeRecorded() bool {
	purged := u.item.Phase == vocabulary.PhaseCompleted || u.item.Phase == vocabulary.PhaseCompleting
	return purged && u.desired.Policies.Order.Purge != nil && (u.isSame() || u.runsOnDelete())
}

// isAppliedOnce reports whether the object must not be touched again. An object of ours was
// applied, even if the answer was lost.
func (u *unit) isAppliedOnce() bool {
	if u.runsOnDelete() {
		return false // it runs once in any case, and has to
	}
	switch u.desired.Policies.Reconcile {
	case v1alpha1.ReconcilePolicyOnce:
		return u.item.Digest != "" || u.isOurs() || u.isInherited()
	case v1alpha1.ReconcilePolicyOncePerManifest:
		// Of which manifest an object was made is known from the record only.
		// An object with a TTL that is gone without having completed is created again.
		broken := u.live.Existence == Absent && (u.finish() == Unfinished || u.finish() == FinishFailed)
		return u.isSame() && !broken
	}
	return false
}
