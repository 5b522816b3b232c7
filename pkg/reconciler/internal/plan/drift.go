// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Conflict is an object that another client changes again and again.
type Conflict struct {
	// Until is when the object is corrected again, and not before. If it has not drifted
	// at that time, the conflict may have ended.
	Until time.Time
	// Last is the drift that was last repaired.
	Last report.Drift
}

// String names the manager and the fields. It stays the same from one correction to
// the next.
func (c Conflict) String() string {
	switch {
	case c.Last.Expired:
		return "it fails and its time to live removes it, again and again, so it is created less and less often"
	case c.Last.Missing:
		return "another client deletes it again and again, so it is created less and less often"
	}
	return c.Last.Edit("changes") + " again and again, so it is corrected less and less often"
}

// CorrectsDrift reports whether the reason of a write is that another client changed or
// deleted the object, and not that its manifest changed.
func (s Step) CorrectsDrift() bool { return s.Drift != nil }

// toleratesDrift reports whether changes of other clients are not undone.
func (u *unit) toleratesDrift() bool {
	return u.desired.Policies.ToleratesDrift() && !u.runsOnDelete() // it has to run
}

// wasDeleted reports whether another client deleted the object that was made of the
// manifest.
func (u *unit) wasDeleted() bool {
	going := u.live.Existence == Present && !u.live.DeletionTimestamp.IsZero() && u.item.UID == u.live.UID
	return (u.live.Existence == Absent || going) && u.wasApplied()
}

// wasReplaced reports whether another client created another object in its place, which
// no other owner has.
func (u *unit) wasReplaced() bool {
	return u.live.Existence == Present && u.live.DeletionTimestamp.IsZero() && u.item.UID != u.live.UID && u.relation != ownedByOther && u.wasApplied()
}

// wasApplied reports whether an object was made of the manifest.
func (u *unit) wasApplied() bool {
	return u.item.UID != "" && u.item.Phase == vocabulary.PhaseApplied && u.isSame()
}

// toleratesDeletion reports whether a deletion or replacement of the object is not
// undone.
func (u *unit) toleratesDeletion() bool {
	return u.toleratesDrift() && !u.isAppliedOnce() && (u.wasDeleted() || u.wasReplaced())
}

func (u *unit) drift() *report.Drift {
	switch {
	case u.wasDeleted():
		return &report.Drift{Missing: true, Expired: u.finish() == FinishFailed}
	case u.wasReplaced():
		return &report.Drift{Missing: true, Replaced: true}
	case u.live.Drift != nil:
		return u.live.Drift
	default:
		return &report.Drift{}
	}
}

// settleDeleted marks an object as settled if its drift policy tolerates that another client
// deleted or replaced it.
func (w *work) settleDeleted(u *unit) bool {
	if !u.toleratesDeletion() {
		return false
	}
	u.settled = true
	w.reportDrift(u)
	return true
}

// reportAltered reports an object that a webhook makes differ from its manifest. It is not written
// again for that: the webhook would do the same.
func (w *work) reportAltered(u *unit) {
	by, fields, altered := strings.Cut(u.item.Altered, ": ")
	if altered && u.desired.Policies.Drift != v1alpha1.DriftPolicyIgnore && !u.isAppliedOnce() && !u.hasDrifted() {
		w.deviations = append(w.deviations, Deviation{Key: u.key, Drift: report.Drift{Fields: strings.Split(fields, ", "), Manager: by}})
	}
}

// reportDrift reports a drifted object that is not repaired, if it is to be reported.
func (w *work) reportDrift(u *unit) {
	if u.desired.Policies.Drift == v1alpha1.DriftPolicyReport {
		w.deviations = append(w.deviations, Deviation{Key: u.key, Drift: *u.drift()})
	}
}

// isAutoscaled reports whether an autoscaler decides about the number of replicas of
// the object: it has set the number, or one of the desired objects configures it.
func (w *work) isAutoscaled(u *unit) bool {
	if u.live.Scaled == nil {
		return false
	}
	return u.live.Scaled.Autoscaler || slices.ContainsFunc(w.units, func(other *unit) bool {
		return other.desired != nil && other.desired.ScaleTarget != nil && *other.desired.ScaleTarget == u.key
	})
}

// reportScaled reports an object that has another number of replicas than its
// manifest, because it was scaled by hand. It is not changed until the manifest asks
// for another number.
func (w *work) reportScaled(u *unit) {
	scaled, replicas := u.live.Scaled, u.item.Replicas
	silent := u.desired.Policies.Drift == v1alpha1.DriftPolicyIgnore || u.isAppliedOnce()
	if scaled == nil || replicas == nil || *replicas == scaled.Replicas || silent || w.isAutoscaled(u) {
		return
	}
	if last := len(w.deviations) - 1; last >= 0 && w.deviations[last].Key == u.key {
		w.deviations[last].Fields = append(slices.Clone(w.deviations[last].Fields), scaled.Path)
		return
	}
	w.deviations = append(w.deviations, Deviation{Key: u.key, Drift: report.Drift{
		Fields: []string{scaled.Path}, Manager: scaled.Manager, At: scaled.At,
	}})
}

// conflict returns the conflict about the object, and whether it must not be corrected
// now, because another client undoes every correction.
func (w *work) conflict(u *unit) (Conflict, bool) {
	c, known := w.in.Conflicts[u.key]
	return c, known && !u.runsOnDelete() && w.in.Now.Before(c.Until)
}

// correctsDrift reports whether a write for this reason would undo a change of another client.
func (reason Reason) correctsDrift() bool {
	return reason == ReasonDrifted || reason == ReasonOwnershipLost || reason == ReasonOwnershipShared
}

// waitConflict waits for the time of the next correction. The object counts as unsettled
// until then, also if it is right at the moment: it was just corrected.
func (w *work) waitConflict(u *unit, c Conflict) {
	u.conflicting = true
	w.waiting = append(w.waiting, Wait{Key: u.key, Reason: report.WaitConflict, Message: c.String(), Until: c.Until})
}
