// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// apply decides about one wanted object whose turn it is: it plans a write,
// notes what is waited for, or finds the object settled.
func (w *work) apply(u *unit) {
	if u.failure != nil {
		w.stuck(u)
		w.wait(u, failureReason(*u.failure), u.failure.Message)
		return
	}
	switch u.live.Existence {
	case Absent:
		w.applyAbsent(u)
	case Present:
		w.applyPresent(u)
	default:
		w.waitUnknown(u)
	}
}

func failureReason(f Failure) WaitReason {
	if f.Blocked {
		return WaitBlocked
	}
	return WaitError
}

func (w *work) waitUnknown(u *unit) {
	w.stuck(u)
	if u.live.NotServed {
		w.wait(u, WaitType, "the type is not served yet")
		return
	}
	w.wait(u, WaitUnknown, why(u.live))
}

func why(o Observation) string {
	if o.Why == "" {
		return "not read yet"
	}
	return o.Why
}

func (w *work) applyAbsent(u *unit) {
	switch {
	case u.completed():
		u.item.Phase = v1alpha1.PhaseCompleted
		u.settled = true
	case u.appliedOnce():
		u.settled = true
	case w.namespaceTerminating(u.key.Namespace):
		w.stuck(u)
		w.wait(u, WaitNamespaceGone, "namespace "+u.key.Namespace+" is being deleted")
	default:
		because := BecauseMissing
		if u.item.Phase == v1alpha1.PhaseRecreating {
			because = BecauseRecreate
		}
		w.write(u, VerbCreate, because)
	}
}

// completed tells whether the object was purged and its manifest is unchanged.
func (u *unit) completed() bool {
	purged := u.item.Phase == v1alpha1.PhaseCompleted || u.item.Phase == v1alpha1.PhaseCompleting
	return purged && u.desired.Policies.Order.Purge != nil && u.same()
}

// appliedOnce tells whether the object must not be touched again.
func (u *unit) appliedOnce() bool {
	return u.desired.Policies.Reconcile == v1alpha1.ReconcilePolicyOnce && u.item.Digest != ""
}

func (w *work) applyPresent(u *unit) {
	switch {
	case !u.live.Deleting.IsZero():
		w.stuck(u)
		w.wait(u, WaitGone, terminating(u.live))
	case u.item.Phase == v1alpha1.PhaseReleased && u.item.UID == u.live.UID && u.relation == foreign:
		w.refuse(u)
	case !u.isOurs():
		w.adopt(u)
	case u.item.Phase == v1alpha1.PhaseCompleting && u.same():
		// The purge was recorded, but not answered.
		w.purgeNow(u)
	case u.item.Phase == v1alpha1.PhaseRecreating && u.item.UID == u.live.UID:
		w.recreate(u)
	default:
		if because, due := w.writeDue(u); due {
			if because == BecauseChanged && u.desired.Policies.Update == v1alpha1.UpdatePolicyRecreate {
				w.recreate(u)
				return
			}
			w.write(u, u.updateVerb(), because)
			return
		}
		w.judge(u)
	}
}

// writeDue tells whether an object of ours has to be written, and why.
func (w *work) writeDue(u *unit) (Reason, bool) {
	switch {
	case u.appliedOnce():
		return "", false
	case u.item.Digest == "" || u.item.Phase == v1alpha1.PhaseRecreating:
		// The object is there but its write was never recorded as accepted.
		return BecauseUnconfirmed, true
	case !u.same():
		return BecauseChanged, true
	case u.relation == stripped:
		return BecauseUnmarked, true
	case u.drifted():
		return BecauseDrifted, true
	case w.reapplyDue(u):
		return BecauseReapply, true
	}
	return "", false
}

func (w *work) reapplyDue(u *unit) bool {
	interval := u.desired.Policies.Reapply
	return interval > 0 && (u.item.AppliedAt == nil || !w.in.Now.Before(u.item.AppliedAt.Add(interval)))
}

// adopt takes over an object that is not ours, if the policy allows it.
func (w *work) adopt(u *unit) {
	if u.item.UID != "" && u.item.UID == u.live.UID && u.relation == foreign {
		// It was ours and somebody else put his mark on it. Taking it back
		// would start a fight.
		w.note(u.key, "released: %s took it over", u.owner)
		u.item.Phase = v1alpha1.PhaseReleased
		w.refuse(u)
		return
	}
	if !u.mayAdopt() {
		w.refuse(u)
		return
	}
	w.write(u, u.updateVerb(), BecauseAdopted)
}

func (w *work) refuse(u *unit) {
	w.stuck(u)
	owner := u.owner
	if owner == "" {
		owner = "nobody"
	}
	w.wait(u, WaitOwner, fmt.Sprintf("belongs to %s and the adoption policy is %s", owner, u.desired.Policies.Adoption))
}

func (u *unit) updateVerb() Verb {
	switch u.desired.Policies.Update {
	case v1alpha1.UpdatePolicySsaMerge:
		return VerbMerge
	case v1alpha1.UpdatePolicySsaOverride:
		return VerbOverride
	default:
		return VerbReplace
	}
}

func (w *work) write(u *unit, verb Verb, because Reason) {
	w.unfinished(u)
	s := u.step(verb, applyStage(u), because)
	s.Desired = u.desired
	s.Then.Digest = u.desired.Digest
	s.Then.Phase = v1alpha1.PhaseApplied
	if verb == VerbCreate {
		s.UID, s.ResourceVersion, s.Finalizers = "", "", nil
		s.Then.UID = ""
	}
	w.step(s)
}

// recreate deletes the object; it is created when its absence is proven.
func (w *work) recreate(u *unit) {
	w.stuck(u)
	if u.item.Phase != v1alpha1.PhaseRecreating || u.item.UID != u.live.UID {
		u.item.Phase, u.item.UID = v1alpha1.PhaseRecreating, u.live.UID
		w.ahead = true
	}
	s := u.step(VerbDelete, applyStage(u), BecauseRecreate)
	s.Guard = guardOf(u)
	w.step(s)
}

// judge finds an object of ours settled, or says what it lacks.
func (w *work) judge(u *unit) {
	if u.item.UID == "" {
		u.item.UID = u.live.UID
	}
	u.item.Seen = u.live.Seen
	switch u.live.Status.Readiness {
	case Ready:
		u.settled = true
	case Failed:
		w.wait(u, WaitFailed, u.live.Status.Message)
	case Unjudged:
		w.judgeSilent(u)
	default:
		w.wait(u, WaitReady, u.live.Status.Message)
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
		u.settled = true
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
