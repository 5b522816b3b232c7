// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// judge finds an object of ours settled, or says what it lacks.
func (w *work) judge(u *unit) {
	if (u.drifted() || u.hadDrifted()) && u.leavesDrift() && !u.appliedOnce() {
		w.report(u)
	}
	w.reportScaled(u)
	switch {
	case u.item.Digest == "" || u.item.UID != u.live.UID:
		// It is applied only once, and the answer to that was lost.
		u.item.Digest, u.item.UID = u.desired.Digest, u.live.UID
		u.item.Seen, u.item.Accepted = u.live.Seen, u.live.Accepted
	case !u.drifted() && !u.tied() && (u.live.Accepted != "" || u.item.Accepted == ""):
		// Without a look at the values that the manifest sets, nobody knows. Drift that
		// nobody repairs, because the object is applied only once, stays visible: the
		// policy may change.
		u.item.Seen = u.live.Seen
	}
	u.item.Phase, u.item.DependsOn = v1alpha1.PhaseApplied, dependenciesOf(u.desired)
	u.item.Finished = finishes[u.live.Ending]
	switch u.live.Status.Readiness {
	case Ready:
		w.settle(u)
	case Failed:
		w.wait(u, WaitFailed, u.live.Status.Message)
	case Unjudged:
		w.judgeSilent(u)
	default:
		w.wait(u, WaitReady, u.live.Status.Message)
	}
}

// finishes are the ends that are recorded: of an object that has a time to live, so that
// what is gone is known to have ended.
var finishes = map[Ending]v1alpha1.Finish{EndingComplete: v1alpha1.FinishComplete, EndingFailed: v1alpha1.FinishFailed}

// settle finds an object ready. One that runs before or after a deletion has done
// its work then. That is durable before it, or anything that waits for it, is
// deleted: otherwise a crash would look as if it had never run.
func (w *work) settle(u *unit) {
	u.settled = true
	if u.isHook() {
		u.item.Phase = v1alpha1.PhaseCompleted
		w.ahead = true
	}
}

// judgeSilent gives the controller of a custom resource a moment to write its
// first status; a resource that nobody looks after counts as ready then.
func (w *work) judgeSilent(u *unit) {
	since := u.live.Created
	if u.item.AppliedAt != nil {
		since = u.item.AppliedAt.Time
	}
	until := since.Add(GraceUnjudged)
	if !w.in.Now.Before(until) {
		w.settle(u)
		return
	}
	w.waiting = append(w.waiting, Wait{Key: u.key, Reason: WaitReady, Message: "no status yet", Until: until})
}

// terminating says what holds up a deletion.
func terminating(o Observation) string {
	message := "is being deleted since " + o.Deleting.UTC().Format(time.RFC3339)
	if len(o.Finalizers) > 0 {
		message += ", held by finalizers " + strings.Join(o.Finalizers, ", ")
	}
	return message
}
